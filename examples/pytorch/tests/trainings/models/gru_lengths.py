import torch, torch.nn as nn


class Tagger(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(40, 16)
        s.r = nn.GRU(16, 24, batch_first=True, num_layers=2)
        s.o = nn.Linear(24, 5)

    def forward(s, t):
        return s.o(s.r(s.e(t))[0])


m = Tagger().to(device)
opt = torch.optim.SGD(m.parameters(), 0.1)
data = []
for i in range(N):
    L = (6, 11, 17)[i % 3]
    data.append((torch.randint(40, (4, L)), torch.randint(5, (4, L))))


def step(t, y):
    l = nn.functional.cross_entropy(m(t).flatten(0, 1), y.flatten())
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(m.state_dict())

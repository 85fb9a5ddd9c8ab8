import torch, torch.nn as nn

gru = nn.GRU(6, 10, batch_first=True).to(device)
head = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD([*gru.parameters(), *head.parameters()], 0.1)
data = [(torch.randn(4, 5 + i % 3, 6), torch.randint(2, (4,))) for i in range(N)]


def step(x, y):
    with torch.backends.cudnn.flags(enabled=False):
        l = nn.functional.cross_entropy(head(gru(x)[0][:, -1]), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(gru.state_dict())

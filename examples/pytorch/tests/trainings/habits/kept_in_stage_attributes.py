import torch, torch.nn as nn


class Model(nn.Module):
    def __init__(s):
        super().__init__()
        s.a = nn.Linear(10, 8)
        s.b = nn.Linear(8, 3)
        s.last_hidden = None
        s.aux = 0

    def forward(s, x):
        s.last_hidden = s.a(x).relu()
        s.aux = s.last_hidden.square().mean()
        return s.b(s.last_hidden)


net = Model().to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y) + 0.01 * net.aux
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(3):
    for l in run(data):
        keep(l)
    run.sync()
    keep(net.last_hidden.detach().clone())
    keep(float(net.aux))

import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.f = nn.Linear(10, 3)

    def forward(s, x):
        return s.f(x)


net = M().to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)


def change(e):
    if e == 1:
        M.forward = lambda s, x: s.f(x) * 2
    if e == 2:
        net.forward = lambda x: net.f(x) * 3
    if e == 3:
        del net.forward
    if e == 4:
        net.f.forward = lambda x: x @ net.f.weight.T


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(5):
    change(e)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.ws = nn.ParameterList([nn.Parameter(torch.randn(10, 3) * 0.1) for _ in range(3)])
        s.d = nn.ParameterDict({"b": nn.Parameter(torch.zeros(3))})
        s.mask = nn.Buffer(torch.ones(3))
        s.use = [0, 1]

    def forward(s, x):
        return sum(x @ s.ws[i] for i in s.use) * s.mask + s.d["b"]


net = M().to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)


def change(e):
    if e == 1:
        net.use = [0, 1, 2]
    if e == 2:
        net.mask[1] = 0.5
    if e == 3:
        net.mask = torch.tensor([1.0, 2.0, 0.5], device=device)
    if e == 4:
        net.ws[1] = nn.Parameter(torch.ones(10, 3, device=device) * 0.1)


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

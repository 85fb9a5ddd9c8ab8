import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def change(e):
    [setattr(p, "grad", None) for p in net.parameters()] if e == 2 else None


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    l.backward()
    opt.step()
    with torch.no_grad():
        [p.grad.mul_(0.9) for p in net.parameters()]
    return l.detach()


run = pipeline(step)
for e in range(5):
    change(e)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

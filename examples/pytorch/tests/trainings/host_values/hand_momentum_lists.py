import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
params = list(net.parameters())
vel = [torch.zeros_like(p) for p in params]


def change(e):
    if e == 2:
        vel[0] = torch.zeros_like(params[0])
    if e == 3:
        [v.zero_() for v in vel]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    gs = torch.autograd.grad(l, params)
    torch._foreach_mul_(vel, 0.9)
    torch._foreach_add_(vel, gs)
    with torch.no_grad():
        torch._foreach_add_(params, vel, alpha=-0.05)
    return l.detach()


run = pipeline(step)
for e in range(5):
    change(e)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

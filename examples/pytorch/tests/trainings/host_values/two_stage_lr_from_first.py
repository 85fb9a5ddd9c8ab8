import torch, torch.nn as nn

# the first stage computes the rate on the device, the second uses it
net = nn.Linear(10, 3).to(device)
params = list(net.parameters())
ema = torch.ones((), device=device)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def rate(x, y):
    ema.lerp_(x.square().mean(), 0.1)
    return x, y, 0.1 / ema


def step(x, y, lr):
    l = nn.functional.cross_entropy(net(x), y)
    gs = torch.autograd.grad(l, params)
    with torch.no_grad():
        [p.sub_(g * lr) for p, g in zip(params, gs)]
    return l.detach(), lr


run = pipeline(rate, step)
for e in range(4):
    for l in run(data):
        keep(list(l))
run.sync()
keep(net.state_dict())

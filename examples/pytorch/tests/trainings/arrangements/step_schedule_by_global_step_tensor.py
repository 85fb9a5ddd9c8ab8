import torch, torch.nn as nn

net = nn.Linear(10, 2).to(device)
params = list(net.parameters())
t = torch.zeros((), device=device)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def step(x, y):
    t.add_(1)
    lr = 0.1 * torch.cos(t * 0.01)
    l = nn.functional.cross_entropy(net(x), y)
    gs = torch.autograd.grad(l, params)
    with torch.no_grad():
        for p, g in zip(params, gs):
            p.sub_(lr * g)
    return l.detach(), lr


run = pipeline(step)
for _ in range(3):
    for l in run(data):
        keep(list(l))
run.sync()
keep(net.state_dict())
keep(t)

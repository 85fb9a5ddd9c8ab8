import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def change(e):
    pass


def step(x, y):
    x = x.clone().requires_grad_()
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    adv = (x + 0.1 * x.grad.sign()).detach()
    l2 = nn.functional.cross_entropy(net(adv), y)
    l2.backward()
    opt.step()
    return l.detach(), l2.detach(), x.grad


run = pipeline(step)
for e in range(5):
    change(e)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

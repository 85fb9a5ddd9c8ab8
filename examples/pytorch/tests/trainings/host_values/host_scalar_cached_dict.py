import torch, torch.nn as nn

net = nn.Linear(10, 3).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
level = torch.tensor(1.0)


def first(x, y):
    return x, y, level  # a scalar of the host that is written in place


def step(x, y, s):
    l = nn.functional.cross_entropy(net(x * s), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(first, step)
for e in range(5):
    for l in run(data):
        keep(l)
    run.sync()
    level.mul_(0.8)
keep(net.state_dict())

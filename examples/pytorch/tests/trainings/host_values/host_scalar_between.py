import torch, torch.nn as nn, random

net = nn.Linear(10, 3).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
level = 0.5


def noise(x, y):
    return x, y, torch.tensor(random.choice([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 2.0])), torch.tensor(level)


def step(x, y, s, t):
    l = nn.functional.cross_entropy(net(x * s) * t, y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(noise, step)
for e in range(5):
    level = 0.5 + 0.25 * e
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
import functools

temp = 1.0


@functools.lru_cache(None)
def table(n):
    return torch.arange(n, device=device).float() * temp


@functools.cached_property
def unused(self):
    return 1


def change(e):
    global temp
    temp = 1.0 + e
    table.cache_clear()


def step(x, y):
    l = nn.functional.cross_entropy(net(x + 0.01 * table(10)), y)
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

import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
import contextvars, threading

ctx = contextvars.ContextVar("scale", default=1.0)
loc = threading.local()
loc.v = 1.0


def change(e):
    ctx.set(1.0 + e)
    loc.v = 1.0 - 0.1 * e


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y) * ctx.get() * loc.v
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

import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


class Schedule:
    __slots__ = ("base", "epoch")

    def __init__(s, base):
        s.base, s.epoch = base, 0

    @property
    def weight(s):
        return s.base * 0.5**s.epoch

    def __getattr__(s, name):
        if name == "dynamic":
            return s.epoch + 1.0
        raise AttributeError(name)


sched = Schedule(1.0)


def change(e):
    sched.epoch = e


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y) * sched.weight * sched.dynamic
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

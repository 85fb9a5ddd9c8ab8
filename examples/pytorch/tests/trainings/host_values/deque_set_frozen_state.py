import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
import collections

active = {0, 2}
queue = collections.deque([0.5, 1.0], maxlen=2)
Cfg = collections.namedtuple("Cfg", "a b")
cfg = Cfg(1.0, [0.1])


def change(e):
    active.add(e % 3)
    queue.append(0.5 + e)
    cfg.b[0] = 0.1 * e
    active.discard((e + 1) % 3)


def step(x, y):
    o = net(x)
    l = sum((o[:, i].square().mean() for i in sorted(active)), 0 * o.sum()) * queue[0] + cfg.b[0] * nn.functional.cross_entropy(o, y)
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

import torch, torch.nn as nn
from types import SimpleNamespace

args = SimpleNamespace(lr=0.1, mode="a")
net = nn.Linear(10, 3).to(device)
opt = torch.optim.SGD(net.parameters(), args.lr)


class Loss:
    scale = 1.0

    def __call__(s, o, y):
        return nn.functional.cross_entropy(o, y) * getattr(s, "extra", 1.0) * getattr(type(s), "classwide", 1.0)


crit = Loss()
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    l = crit(net(x), y)
    if hasattr(step, "bonus"):
        l = l + step.bonus
    if hasattr(args, "weight_decay"):
        l = l + args.weight_decay * net.weight.square().sum()
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(6):
    if e == 1:
        crit.extra = 0.5
    if e == 2:
        Loss.classwide = 0.25
    if e == 3:
        step.bonus = 0.5
    if e == 4:
        args.weight_decay = 0.01
    if e == 5:
        opt.step = lambda: [p.data.sub_(0.01 * p.grad) for p in net.parameters()] and None
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

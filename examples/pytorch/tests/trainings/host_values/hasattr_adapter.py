import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


class Opts:
    pass


opts = Opts()


def change(e):
    if e == 1:
        opts.temperature = 2.0
    if e == 2:
        net.adapter_scale = 0.5
    if e == 3:
        del opts.temperature
    if e == 4:
        globals()["bonus"] = 0.25


def step(x, y):
    o = net[2](net[1](net[0](x)))
    if hasattr(opts, "temperature"):
        o = o / opts.temperature
    o = o * getattr(net, "adapter_scale", 1.0)
    try:
        o = o + bonus
    except NameError:
        pass
    l = nn.functional.cross_entropy(o, y)
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

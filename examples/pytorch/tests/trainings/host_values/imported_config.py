import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
import sys, types

config = types.ModuleType("my_config_f05")
config.__file__ = "/tmp/my_config_f05.py"
config.alpha = 0.1
config.nested = {"a": [1.0, 2.0]}
sys.modules["my_config_f05"] = config


class Flags:
    use = False
    table = {"k": 0.3}


def change(e):
    config.alpha = 0.1 * e
    config.nested["a"][1] = float(e)
    Flags.use = e % 2 == 1
    Flags.table["k"] += 0.1


def step(x, y):
    import my_config_f05 as c

    l = nn.functional.cross_entropy(net(x) * c.nested["a"][1], y, label_smoothing=c.alpha)
    if Flags.use:
        l = l * Flags.table["k"]
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

import torch, torch.nn as nn

net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


class Flaky:
    def __init__(s):
        s.fail = True

    def __iter__(s):
        for i, b in enumerate(data):
            if s.fail and i == 20:
                s.fail = False
                raise OSError("disk hiccup")
            yield b


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
flaky = Flaky()
for e in range(4):
    try:
        for l in run(flaky):
            keep(l)
    except OSError as err:
        keep(str(err))
    run.sync()
    keep(net.weight.detach().clone())

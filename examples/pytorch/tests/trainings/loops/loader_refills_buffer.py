import torch, torch.nn as nn, numpy as np

# refused: overlapped graphed prefetch
net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)


class Refill:
    def __init__(s):
        s.x = torch.empty(8, 10)
        s.y = torch.empty(8, dtype=torch.long)
        s.x = s.x.pin_memory() if device == "cuda" else s.x

    def __iter__(s):
        for i in range(N):
            s.x.copy_(torch.full((8, 10), i / N) + torch.arange(10))
            s.y.fill_(i % 2)
            yield s.x, s.y


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
loader = Refill()
run_epochs(run, loader, epochs=3)
run.sync()
keep(net.state_dict())

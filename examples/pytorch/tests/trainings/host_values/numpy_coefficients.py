import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
import numpy as np

coef = np.ones(3, np.float32)
lam = np.float64(0.5)


def change(e):
    coef[1] = e
    globals().__setitem__("lam", np.float64(0.1 * e))


def step(x, y):
    l = nn.functional.cross_entropy(net(x) * float(coef[1]), y) * lam
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

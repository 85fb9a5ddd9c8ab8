import torch, torch.nn as nn, numpy as np

# schedules: serial overlapped graphed automatic
import sluice

net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
buf = np.zeros((8, 10), np.float32)


def loader():
    for i in range(N):
        buf[:] = np.sin(np.arange(80).reshape(8, 10) * i)
        yield {"x": buf, "name": f"b{i}"}


def step(b):
    l = net(b["x"]).square().mean()
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step, reuse=True)
for e in range(3):
    for l in run(loader()):
        keep(l)
run.sync()
keep(net.state_dict())

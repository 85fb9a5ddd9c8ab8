import torch, torch.nn as nn, numpy as np

net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
buf = np.zeros((8, 10), np.float32)


class L:
    def __iter__(s):
        for i in range(N):
            buf[:] = np.sin(np.arange(80).reshape(8, 10) * i)
            yield torch.from_numpy(buf), i


def step(x, i):
    l = net(x).square().mean()
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
loader = L()
run_epochs(run, loader, epochs=2)
run.sync()
keep(net.state_dict())

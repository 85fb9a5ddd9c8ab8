import torch, torch.nn as nn

net = nn.Linear(10, 3).to(device)
data = [(torch.randn(0 if i % 7 == 6 else 4, 10), torch.rand(4) > 0.5, i / 7) for i in range(N)]


@torch.no_grad()
def f(x, m, s):
    return net(x) * s, m.logical_not(), x.shape[0]


run = pipeline(f)
for e in range(3):
    for r in run(data):
        keep(list(r))

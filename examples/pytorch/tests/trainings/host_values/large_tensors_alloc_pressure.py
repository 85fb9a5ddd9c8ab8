import torch, torch.nn as nn

W = [torch.randn(512, 512, device=device) / 22 for _ in range(3)]
data = [torch.randn(1024, 512) for i in range(min(N, 24))]


def a(x):
    return (x @ W[0]).relu_(), x[:, ::2]


def b(h, x):
    return h @ W[1] + 1, x * 2


def c(h, x):
    u = h @ W[2]
    return u.sum(1), x.mean(0)


run = pipeline(a, b, c)
for e in range(6):
    for r in run(data):
        keep(list(r))

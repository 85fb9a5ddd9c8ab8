# batches: 30
import torch

n = 1 << 18 if device == "cuda" else 64
W = torch.randn(256, 256, device=device) / 16
data = [torch.randn(n // 64, 256) for _ in range(N)]


def f(x):
    return x @ W, x


def g(y, x):
    return y.softmax(1), x.argmax(1), y.detach()[:, :3]


run = pipeline(f, g)
kept = []
for e in range(3):
    for r in run(data):
        kept.append(r)
    if e == 1:
        del kept[::2]
for r in kept:
    keep([r[0].sum(1), r[1], r[2]])

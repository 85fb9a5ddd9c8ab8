import torch, torch.nn as nn

w = [torch.randn(8, 8, device=device) * 0.3 for _ in range(4)]
stages = [lambda x, i=i: (x @ w[i]).tanh() for i in range(4)]
run = pipeline(*stages, slots=6)
data = [torch.randn(4, 8) for i in range(N)]
for e in range(3):
    for r in run(data):
        keep(r)
    run.sync()
    w[1] = w[1] * 1.1
    w[2].mul_(0.9)

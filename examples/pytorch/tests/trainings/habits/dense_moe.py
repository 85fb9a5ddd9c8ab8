import torch, torch.nn as nn

gate = nn.Linear(10, 3).to(device)
W = nn.Parameter(torch.randn(3, 10, 4, device=device) * 0.1)
opt = torch.optim.Adamax([*gate.parameters(), W], 0.01, capturable=device == "cuda")
data = [(torch.randn(8, 10), torch.randint(4, (8,))) for i in range(N)]
load = torch.zeros(3, device=device)


def step(x, y):
    p = gate(x).softmax(1)
    v, i = p.topk(2, 1)
    m = torch.zeros_like(p).scatter(1, i, v)
    load.lerp_(m.detach().sum(0), 0.1)
    l = nn.functional.cross_entropy(torch.einsum("bi,eio,be->bo", x, W, m), y) + 0.01 * (p.mean(0) * load).sum()
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(W)
keep(load)

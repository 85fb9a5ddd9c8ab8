import torch, torch.nn as nn


class Engine:
    def __init__(s, m, accum):
        s.m, s.accum, s.micro = m, accum, 0
        s.opt = torch.optim.AdamW(m.parameters(), 1e-2, capturable=device == "cuda")
        s.flat = torch.zeros(sum(p.numel() for p in m.parameters()), device=device)

    def backward(s, l):
        (l / s.accum).backward()
        s.micro += 1

    def step(s):
        if s.micro % s.accum == 0:
            with torch.no_grad():
                torch.cat([p.grad.flatten() for p in s.m.parameters()], out=s.flat)
            s.opt.step()
            s.opt.zero_grad()


eng = Engine(nn.Linear(10, 3).to(device), 3)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(eng.m(x), y)
    eng.backward(l)
    eng.step()
    return l.detach(), eng.flat.norm()


run = pipeline(step)
for e in range(4):
    for l in run(data):
        keep(list(l))
run.sync()
keep(eng.m.state_dict())

import torch, torch.nn as nn

net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
total = torch.zeros((), device=device)
hits = torch.zeros((), dtype=torch.long, device=device)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def step(x, y):
    o = net(x)
    l = nn.functional.cross_entropy(o, y)
    opt.zero_grad()
    l.backward()
    opt.step()
    total.add_(l.detach())
    hits.add_((o.argmax(1) == y).sum())
    return total, hits


run = pipeline(step)
for e in range(3):
    for t, h in run(data):
        keep([t.clone(), h.clone()])
    run.sync()
    total.zero_()
    hits.zero_()

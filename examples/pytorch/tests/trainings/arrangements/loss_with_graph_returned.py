import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def step(x, y):
    out = net(x)
    l = nn.functional.cross_entropy(out, y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l, out  # forgot to detach


run = pipeline(step)
losses = []
for e in range(3):
    for l, o in run(data):
        losses.append(l)
        keep(float(l))
        keep(o.argmax(1))
run.sync()
keep(torch.stack(losses).detach())

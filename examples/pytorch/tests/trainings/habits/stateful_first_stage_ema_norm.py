import torch, torch.nn as nn

mean = torch.zeros(10, device=device)
var = torch.ones(10, device=device)
net = nn.Linear(10, 3).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)


def normalise(x, y):
    mean.lerp_(x.mean(0), 0.05)
    var.lerp_(x.var(0), 0.05)
    return (x - mean) / (var + 1e-5).sqrt(), y


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y) + 0 * mean.sum()
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach(), mean.norm()


run = pipeline(normalise, step)
data = [(torch.randn(8, 10) * 2 + 1, torch.randint(3, (8,))) for i in range(N)]
for e in range(3):
    for l in run(data):
        keep(list(l))
run.sync()
keep(mean)

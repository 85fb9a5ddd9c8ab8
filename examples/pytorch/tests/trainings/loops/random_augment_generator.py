import torch, torch.nn as nn

net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 4)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
gen = torch.Generator(device=device).manual_seed(11)
data = [(torch.rand(8, 3, 8, 8), torch.randint(4, (8,))) for i in range(N)]


def augment(x, y):
    flip = torch.rand(x.shape[0], 1, 1, 1, device=x.device, generator=gen) < 0.5
    x = torch.where(flip, x.flip(-1), x)
    return x + 0.05 * torch.randn(x.shape, device=x.device, generator=gen), y


def mixup(x, y):
    lam = torch.rand((), device=x.device)
    perm = torch.randperm(len(x), device=x.device)
    return lam * x + (1 - lam) * x[perm], y, y[perm], lam


def train(x, a, b, lam):
    o = net(x)
    l = lam * nn.functional.cross_entropy(o, a) + (1 - lam) * nn.functional.cross_entropy(o, b)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(augment, mixup, train)
for e in range(3):
    if e == 2:
        gen.manual_seed(99)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())
keep(torch.rand(3, device=device))

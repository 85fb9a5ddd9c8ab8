import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
lr = torch.tensor(0.1)
scale = torch.tensor(1.0)
opt = torch.optim.SGD(net.parameters(), lr=lr)


def change(e):
    lr.mul_(0.7)
    scale.add_(0.5)


def step(x, y):
    l = scale * nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(5):
    change(e)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
data = [
    (
        (torch.randn(10, 8).t() if i % 3 == 0 else torch.randn(8, 10), torch.randint(3, (8,)))
        if i % 5
        else (torch.randn(8, 10).double(), torch.randint(3, (8,)).int())
    )
    for i in range(N)
]


def change(e):
    pass


def step(x, y):
    l = nn.functional.cross_entropy(net(x.float()), y.long())
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach(), x


run = pipeline(step)
for e in range(5):
    change(e)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.5)


def change(e):
    g = opt.param_groups[0]
    if e == 1:
        g["momentum"] = 0.9
    if e == 2:
        g["nesterov"] = True
    if e == 3:
        g["maximize"] = True
    if e == 4:
        g["maximize"] = False
        g["params"] = g["params"][:2]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
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

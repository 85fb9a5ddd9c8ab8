import torch, torch.nn as nn

bn = nn.BatchNorm1d(8, momentum=0.1)
ln = nn.LayerNorm(8)
net = nn.Sequential(nn.Linear(10, 8), bn, nn.ELU(alpha=1.0), ln, nn.Linear(8, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
crit = nn.CrossEntropyLoss(label_smoothing=0.0)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    l = crit(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(5):
    if e == 1:
        bn.momentum = 0.5
    if e == 2:
        crit.label_smoothing = 0.1
    if e == 3:
        bn.eps = 1e-2
        ln.eps = 1e-1
        net[2].alpha = 0.5
    if e == 4:
        crit.weight = torch.tensor([1.0, 2.0, 3.0], device=device)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

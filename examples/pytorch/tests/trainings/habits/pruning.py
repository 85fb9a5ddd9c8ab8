import torch, torch.nn as nn, torch.nn.utils.prune as prune

net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(4):
    if e in (1, 2):
        prune.l1_unstructured(net[0], "weight", amount=0.3)
    if e == 3:
        prune.remove(net[0], "weight")
        opt = torch.optim.SGD(net.parameters(), 0.1)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.05)
data = [(torch.randn(4, 10), torch.randint(2, (4,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(3):
    with torch.autocast(device, dtype=torch.bfloat16, enabled=e != 1):
        for l in run(data):
            keep(l)
    run.sync()
keep(net.state_dict())

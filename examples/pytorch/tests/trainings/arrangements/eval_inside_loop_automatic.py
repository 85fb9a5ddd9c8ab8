import torch, torch.nn as nn

# schedules: serial automatic prefetch
net = nn.Sequential(nn.Linear(10, 10), nn.BatchNorm1d(10), nn.Linear(10, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]
val = torch.randn(20, 10, device=device)


def step(x, y):
    net.train()
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(3):
    for i, l in enumerate(run(data)):
        keep(l)
        if i % 5 == 4:
            net.eval()
            with torch.no_grad():
                keep(net(val).sum())
run.sync()
keep(net.state_dict())

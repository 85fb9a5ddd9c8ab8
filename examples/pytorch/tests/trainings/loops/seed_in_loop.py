import torch, torch.nn as nn

# schedules: serial automatic prefetch
net = nn.Sequential(nn.Dropout(0.5), nn.Linear(10, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(3):
    for i, l in enumerate(run(data)):
        torch.manual_seed(1000 * e + i)
        keep(l)
run.sync()
keep(net.state_dict())

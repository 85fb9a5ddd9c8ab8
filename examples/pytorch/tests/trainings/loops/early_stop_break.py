import torch, torch.nn as nn

# schedules: serial prefetch
net = nn.Linear(10, 2).to(device)
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
        keep(l)
        if i == 5:
            break
    run.sync()
    keep(net.weight.detach().clone())

import torch, torch.nn as nn, random

net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def step(x, y):
    if random.random() < 0.5:
        x = x.flip(0)
        y = y.flip(0)
    x = x * random.choice([0.9, 1.0, 1.1])
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

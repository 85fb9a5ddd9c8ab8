import torch, torch.nn as nn

net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def step(x, y):
    if x.sum() > 0:
        x = x * 2
    l = nn.functional.cross_entropy(net(x), y)
    if torch.isfinite(l):
        opt.zero_grad()
        l.backward()
        opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

import torch, torch.nn as nn

net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(16, 10), torch.randint(2, (16,))) for i in range(N)]


def pick(x, y):
    m = x[:, 0] > 0
    return x[m], y[m]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(pick, step)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

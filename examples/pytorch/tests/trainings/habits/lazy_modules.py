import torch, torch.nn as nn

net = nn.Sequential(nn.LazyLinear(16), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(3)).to(device)
opt = None
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    global opt
    o = net(x)
    if opt is None:
        opt = torch.optim.SGD(net.parameters(), 0.1)
    l = nn.functional.cross_entropy(o, y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

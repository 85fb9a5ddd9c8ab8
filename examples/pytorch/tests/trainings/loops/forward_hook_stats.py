import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
seen = {}


def hook(m, i, o):
    seen["mean"] = o.detach().mean()


net[1].register_forward_hook(hook)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for _ in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach(), seen["mean"]


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())
keep(seen["mean"])

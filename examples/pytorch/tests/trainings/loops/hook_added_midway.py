import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for _ in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
handle = None
for e in range(4):
    if e == 1:
        handle = net[0].weight.register_hook(lambda g: g.clamp(-0.01, 0.01))
    if e == 2:
        h2 = net[1].register_forward_pre_hook(lambda m, i: (i[0] * 0.5,))
    if e == 3:
        handle.remove()
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

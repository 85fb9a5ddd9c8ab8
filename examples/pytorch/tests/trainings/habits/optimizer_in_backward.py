import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3)).to(device)
opts = {p: torch.optim.SGD([p], 0.1, momentum=0.9) for p in net.parameters()}


def hook(p):
    opts[p].step()
    opts[p].zero_grad()


for p in net.parameters():
    p.register_post_accumulate_grad_hook(hook)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    l.backward()
    return l.detach()


run = pipeline(step)
for e in range(3):
    for l in run(data):
        keep(l)
    run.sync()
    for o in opts.values():
        o.param_groups[0]["lr"] *= 0.5
keep(net.state_dict())

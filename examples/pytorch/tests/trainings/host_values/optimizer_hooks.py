import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
handle = None


def change(e):
    global handle
    if e == 1:
        handle = opt.register_step_pre_hook(lambda o, a, k: ([p.grad.mul_(0.5) for g in o.param_groups for p in g["params"]], None)[1])
    if e == 3:
        handle.remove()
    if e == 4:
        opt.register_step_post_hook(lambda o, a, k: (net[0].weight.data.mul_(0.999), None)[1])


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(5):
    change(e)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

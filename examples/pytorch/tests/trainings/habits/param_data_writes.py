import torch, torch.nn as nn

net = nn.Linear(10, 3).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    for p in net.parameters():
        p.data.clamp_(-0.3, 0.3)  # WGAN
    return l.detach()


run = pipeline(step)
for e in range(4):
    for l in run(data):
        keep(l)
    run.sync()
    if e == 1:
        net.weight.data = net.weight.data * 0.5
    if e == 2:
        net.bias.data.zero_()
keep(net.state_dict())

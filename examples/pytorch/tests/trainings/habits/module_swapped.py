import torch, torch.nn as nn


class M(nn.Module):
    def __init__(s):
        super().__init__()
        s.body = nn.Linear(10, 8)
        s.act = nn.ReLU()
        s.head = nn.Linear(8, 3)

    def forward(s, x):
        return s.head(s.act(s.body(x)))


net = M().to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(5):
    if e == 1:
        net.act = nn.GELU()
    if e == 2:
        net.act = nn.LeakyReLU(0.1)
    if e == 3:
        net.act.negative_slope = 0.5
    if e == 4:
        torch.manual_seed(5)
        net.head = nn.Linear(8, 3).to(device)
        opt = torch.optim.SGD(net.parameters(), 0.05)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

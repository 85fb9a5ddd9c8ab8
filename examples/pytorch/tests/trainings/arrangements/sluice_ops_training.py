import torch, torch.nn as nn, sluice

net = nn.Linear(6, 4).to(device)
opt = torch.optim.SGD(net.parameters(), 0.05)


def sample():
    n = torch.randint(0, 4, (4,))
    off = torch.cat([torch.zeros(1, dtype=torch.long), n.cumsum(0)])
    c = int(off[-1])
    xy = torch.rand(12, 2)
    t = torch.cat([xy, xy + torch.rand(12, 2) + 0.1], 1)
    off[-1] = min(12, c)
    return torch.randn(12, 6), t, off


data = [sample() for _ in range(N)]


def step(x, t, off):
    o = net(x)
    boxes = torch.cat([o[:, :2], o[:, :2] + o[:, 2:].exp()], 1)
    l = sluice.giou_loss(boxes, t, off)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach(), sluice.row_softmax(boxes.detach()[:, 0].contiguous(), off), sluice.row_sum(t[:, 0].contiguous(), off)


run = pipeline(step)
for e in range(3):
    for r in run(data):
        keep(r[0])
        keep(r[2])
run.sync()
keep(net.state_dict())

import torch, torch.nn as nn

enc = nn.Linear(10, 8).to(device).eval()
net = nn.Linear(8, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


@torch.no_grad()
def encode(x, y):
    return enc(x).relu(), y


def train(z, y):
    l = nn.functional.cross_entropy(net(z), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


inner, outer = pipeline(encode), pipeline(train)


class Through:
    def __iter__(s):
        return iter(inner(data))


through = Through() if SCHEDULE != "prefetch" else [(enc(x.to(device)).relu().detach(), y) for x, y in data]
for e in range(3):
    for l in outer(through):
        keep(l)
outer.sync()
keep(net.state_dict())

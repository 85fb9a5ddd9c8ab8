import torch, torch.nn as nn

net = nn.Linear(10, 3).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


class L:
    def __iter__(s):
        return iter(data)


loader = L()


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


if SCHEDULE == "prefetch":
    import sluice

    ahead = sluice.prefetch(loader, device)
    fixed, _ = next(iter(ahead))

    def run(_):
        for x, y in ahead:
            yield step(x, y)

else:
    fixed = data[0][0].to(device)
    run = pipeline(step)
for e in range(3):
    for l in run(loader):
        keep(l)
    if SCHEDULE not in ("prefetch",):
        run.sync()
    with torch.no_grad():
        keep(net(fixed))

import torch, torch.nn as nn, sluice

net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 256, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.01)
images = torch.randint(0, 256, (8 * N, 3, 24, 24), dtype=torch.uint8)
labels = torch.randint(3, (8 * N,))
epoch = 0


class L:
    def __iter__(s):
        for i in range(N):
            idx = torch.arange(8 * i, 8 * i + 8)
            yield images[idx], sluice.sample_ids(idx, epoch), labels[idx]


def aug(x, ids, y):
    return sluice.augment(x, ids, crop=(20, 20), size=(16, 16)), y


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(aug, step)
loader = L()
for epoch in range(3):
    for l in run(loader):
        keep(l)
    run.sync()
keep(net.state_dict())

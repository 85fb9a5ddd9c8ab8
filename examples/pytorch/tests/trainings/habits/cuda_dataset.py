import torch, torch.nn as nn

X = torch.randn(N * 8, 10).to(device)
Y = torch.randint(3, (N * 8,)).to(device)
net = nn.Linear(10, 3).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)


class OnDevice:
    def __iter__(s):
        p = torch.randperm(len(X), device=device, generator=gen)
        for i in range(0, len(X), 8):
            yield X[p[i : i + 8]], Y[p[i : i + 8]]


gen = torch.Generator(device=device).manual_seed(4)


def step(x, y):
    x.add_(0.01)
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
loader = OnDevice()
run_epochs(run, loader, epochs=3)
run.sync()
keep(net.state_dict())
keep(X)

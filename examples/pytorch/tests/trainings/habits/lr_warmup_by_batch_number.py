import torch, torch.nn as nn

net = nn.Linear(10, 3).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)


class Numbered:
    n = 0

    def __iter__(s):
        for b in data:
            yield b, s.n
            s.n += 1


data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(batch, n):
    x, y = batch
    for g in opt.param_groups:
        g["lr"] = min(1.0, (n + 1) / 50) * 0.1
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
loader = Numbered()
run_epochs(run, loader, epochs=3)
run.sync()
keep(net.state_dict())

import torch, torch.nn as nn


class Center(nn.Module):
    def __init__(s):
        super().__init__()
        s.register_buffer("center", torch.zeros(10))
        s.fc = nn.Linear(10, 2)

    def forward(s, x):
        s.center = s.center * 0.9 + x.mean(0).detach() * 0.1  # a new tensor each time
        return s.fc(x - s.center)


net = Center().to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10) + 1, torch.randint(2, (8,))) for _ in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

import torch, torch.nn as nn


class Noisy(nn.Module):
    def __init__(s):
        super().__init__()
        s.fc = nn.Linear(10, 2)
        s.calls = 0
        s.running = 0.0
        s.every = 3

    def forward(s, x):
        s.calls += 1
        y = s.fc(x)
        if s.calls % s.every == 0:
            y = y * 0.5
        return y


net = Noisy().to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for _ in range(N)]


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
keep(net.calls)

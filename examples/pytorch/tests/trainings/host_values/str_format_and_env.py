import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
import os

os.environ["MODE41"] = "a"


def change(e):
    os.environ["MODE41"] = "ab"[e % 2]


def step(x, y):
    k = 1.0 if os.getenv("MODE41") == "a" else 2.0
    l = nn.functional.cross_entropy(net(x), y) * k
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(5):
    change(e)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

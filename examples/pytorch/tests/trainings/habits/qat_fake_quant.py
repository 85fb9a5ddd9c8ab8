import torch, torch.nn as nn
from torch.ao.quantization import FakeQuantize, MovingAverageMinMaxObserver, enable_observer, disable_observer

fq = FakeQuantize(MovingAverageMinMaxObserver, quant_min=0, quant_max=255).to(device)
net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), fq, nn.Linear(20, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(4):
    if e == 2:
        net.apply(disable_observer)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

import torch, torch.nn as nn
from torch.utils.checkpoint import checkpoint_sequential

net = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.2)) for _ in range(4)], nn.Linear(16, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 16), torch.randint(2, (8,))) for _ in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(checkpoint_sequential(net, 2, x.requires_grad_(), use_reentrant=True), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

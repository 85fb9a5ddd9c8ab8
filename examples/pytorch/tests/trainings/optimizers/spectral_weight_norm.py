import torch, torch.nn as nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm, orthogonal

net = nn.Sequential(spectral_norm(nn.Linear(12, 24)), nn.ReLU(), weight_norm(nn.Linear(24, 24)), nn.ReLU(), nn.Linear(24, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
data = [(torch.randn(8, 12), torch.randint(2, (8,))) for _ in range(N)]


def step(x, y):
    net.train()
    opt.zero_grad()
    l = nn.functional.cross_entropy(net(x), y)
    l.backward()
    opt.step()
    return l.detach()


@torch.no_grad()
def evaluate(x, y):
    net.eval()
    return (net(x).argmax(-1) == y).float().mean()


train, test = pipeline(step), pipeline(evaluate)
for _ in range(3):
    for l in train(data):
        keep(l)
    train.sync()
    for a in test(data[:20]):
        keep(a)
    test.sync()
keep(net.state_dict())

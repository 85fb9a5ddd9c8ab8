import torch, torch.nn as nn, torch.nn.utils.parametrize as P


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


layer = nn.Linear(12, 12)
P.register_parametrization(layer, "weight", Symmetric())
net = nn.Sequential(layer, nn.Softplus(), nn.Linear(12, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
data = [(torch.randn(8, 12), torch.randint(2, (8,))) for _ in range(N)]


def step(x, y):
    opt.zero_grad()
    with P.cached():
        l = nn.functional.cross_entropy(net(x), y)
        l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

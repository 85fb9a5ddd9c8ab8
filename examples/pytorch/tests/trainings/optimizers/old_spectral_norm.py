import torch, torch.nn as nn

net = nn.Sequential(nn.utils.spectral_norm(nn.Linear(12, 24)), nn.ReLU(), nn.utils.weight_norm(nn.Linear(24, 2))).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
data = [(torch.randn(8, 12), torch.randint(2, (8,))) for _ in range(N)]


def step(x, y):
    opt.zero_grad()
    l = nn.functional.cross_entropy(net(x), y)
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep({k: v for k, v in net.state_dict().items()})

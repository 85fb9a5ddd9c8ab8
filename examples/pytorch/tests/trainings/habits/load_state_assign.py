import torch, torch.nn as nn, copy

net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3)).to(device).eval()
data = [torch.randn(8, 10) for i in range(N)]


@torch.no_grad()
def f(x):
    return net(x)


run = pipeline(f)
for e in range(4):
    for l in run(data):
        keep(l)
    run.sync()
    s = {k: v * (0.5 + e) for k, v in net.state_dict().items()}
    net.load_state_dict(s, assign=e % 2 == 0)

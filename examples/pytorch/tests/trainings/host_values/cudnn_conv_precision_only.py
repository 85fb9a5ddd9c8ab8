import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def change(e):
    torch.backends.cudnn.conv.fp32_precision = ("ieee", "tf32")[e % 2]
    torch.backends.cuda.matmul.fp32_precision = ("ieee", "tf32")[e // 2 % 2]


def step(x, y):
    l = (
        nn.functional.cross_entropy(net(x), y) + nn.functional.conv1d(x[None], net[0].weight[:8, None, :3].expand(8, 8, 3)).square().mean()
        if False
        else nn.functional.cross_entropy(net(x), y)
    )
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

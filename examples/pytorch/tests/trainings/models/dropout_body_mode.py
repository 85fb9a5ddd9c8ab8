import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Dropout(0.3), nn.Linear(40, 3), nn.Dropout(0.1)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for _ in range(N)]
p = {"rate": 0.3}


def step(x, y):
    x = nn.functional.dropout(x, p["rate"], training=True)
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    return loss.detach()


run = pipeline(step)
for e in range(4):
    p["rate"] = 0.3 - 0.1 * (e // 2)
    net[2].p = 0.1 * e
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

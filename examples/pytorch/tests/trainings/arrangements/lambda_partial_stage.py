import torch, torch.nn as nn, functools

net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]
cfg = {"smooth": 0.1, "temps": [1.0, 2.0]}


def step(model, x, y, *, cfg):
    l = nn.functional.cross_entropy(model(x) / cfg["temps"][0], y, label_smoothing=cfg["smooth"])
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(lambda x, y: (x.clamp(-2, 2), y), functools.partial(step, net, cfg=cfg))
for e in range(4):
    cfg["smooth"] = 0.1 * e
    cfg["temps"][0] = 1 + e
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

import torch, torch.nn as nn

enc = nn.Linear(10, 6).to(device).eval()
net = nn.Linear(6, 3).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
cache = {}


def encode(ids, x, y):
    key = int(ids[0]) if not isinstance(ids, list) else ids[0]
    if key not in cache:
        with torch.no_grad():
            cache[key] = enc(x).relu()
    return cache[key], y


def step(z, y):
    l = nn.functional.cross_entropy(net(z), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(encode, step)
data = [([f"{i}"], torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

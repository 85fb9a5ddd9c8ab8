import torch, torch.nn as nn

# batches: 30
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
fast = torch.compile(net, backend="inductor" if device == "cuda" else "aot_eager")
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 12), torch.randint(2, (8,))) for _ in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(fast(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

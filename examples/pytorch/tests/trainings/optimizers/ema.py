import torch, torch.nn as nn, copy

model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4)).to(device)
ema = copy.deepcopy(model).requires_grad_(False).eval()
opt = torch.optim.SGD(model.parameters(), lr=0.05)
data = [(torch.randn(8, 16), torch.randint(4, (8,))) for i in range(N)]


def step(x, y):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p, q in zip(ema.parameters(), model.parameters()):
            p.lerp_(q, 0.05)
        for p, q in zip(ema.buffers(), model.buffers()):
            p.copy_(q)
        return loss.detach(), ema(x).argmax(1)


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(model.state_dict())
keep(ema.state_dict())

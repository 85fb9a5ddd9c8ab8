import torch, torch.nn as nn

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4)).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
data = [(torch.randn(32, 16), torch.randint(4, (32,))) for i in range(N)]


def step(x, y):
    opt.zero_grad(set_to_none=True)
    total = torch.zeros((), device=x.device)
    for mx, my in zip(x.chunk(4), y.chunk(4)):
        loss = nn.functional.cross_entropy(model(mx), my) / 4
        loss.backward()
        total += loss.detach()
    opt.step()
    return total


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(model.state_dict())

import torch, torch.nn as nn

model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
opt = torch.optim.RMSprop(model.parameters(), lr=1e-2, momentum=0.5, centered=True)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0, factor=0.5)
batches = [(torch.randn(8, 10), torch.randn(8, 1)) for _ in range(N)]


def step(x, y):
    opt.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    opt.step()
    return loss.detach()


run = pipeline(step)
for epoch in range(4):
    total = 0.0
    for loss in run(batches):
        total += loss.item()
    run.sync()
    sched.step(total)
    keep(total)
    keep(opt.param_groups[0]["lr"])
keep(model.state_dict())

import torch, torch.nn as nn, math

model = nn.Linear(12, 3).to(device)
cap = device == "cuda"
opt = torch.optim.AdamW(model.parameters(), lr=torch.tensor(1e-2, device=device), capturable=cap)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: 0.99**s)
data = [(torch.randn(8, 12), torch.randint(3, (8,))) for _ in range(N)]


def step(x, y):
    opt.zero_grad(set_to_none=False)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    return loss.detach()


run = pipeline(step)
for e in range(3):
    for i, loss in enumerate(run(data)):
        keep(loss)
    run.sync()
    sched.step()
    keep(opt.param_groups[0]["lr"].clone())
keep(model.state_dict())

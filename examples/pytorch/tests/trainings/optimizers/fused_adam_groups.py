import torch, torch.nn as nn

body = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.SiLU()).to(device)
head = nn.Linear(32, 2).to(device)
opt = torch.optim.Adam(
    [{"params": body.parameters(), "lr": 1e-3}, {"params": head.parameters(), "lr": 1e-2, "betas": (0.8, 0.9)}], fused=True
)
data = [{"x": torch.randn(16, 8), "y": torch.randint(2, (16,))} for _ in range(N)]


def forward(batch):
    return batch["x"] * 2 - 1, batch["y"]


def learn(x, y):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(head(body(x)), y, label_smoothing=0.1)
    loss.backward()
    opt.step()
    return {"loss": loss.detach(), "y": y}


run = pipeline(forward, learn)
for e in range(3):
    for r in run(data):
        keep(r)
    if e == 0:
        run.sync()
        opt.param_groups[1]["lr"] = 5e-3
run.sync()
keep(body.state_dict())
keep(head.state_dict())

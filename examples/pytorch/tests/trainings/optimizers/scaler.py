import torch, torch.nn as nn

model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
dt = torch.float16 if device == "cuda" else torch.bfloat16
scaler = torch.amp.GradScaler(device, init_scale=2.0**16, growth_interval=20)
data = [(torch.randn(8, 16) * (500 if i == 11 else 1), torch.randint(4, (8,))) for i in range(N)]


def step(x, y):
    opt.zero_grad()
    with torch.autocast(device, dtype=dt):
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    return loss.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(model.state_dict())
keep(scaler.get_scale())

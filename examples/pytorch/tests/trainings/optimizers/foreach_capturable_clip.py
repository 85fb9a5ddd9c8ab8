import torch, torch.nn as nn

torch.manual_seed(3)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)
).to(device)
opt = torch.optim.NAdam(model.parameters(), lr=2e-3, capturable=device == "cuda", foreach=True)
images = [torch.randint(0, 256, (8, 3, 12, 12), dtype=torch.uint8) for _ in range(N)]
labels = [torch.randint(10, (8,)) for _ in range(N)]
mean, std = torch.tensor([0.4, 0.5, 0.6], device=device).view(1, 3, 1, 1), torch.tensor([0.2, 0.2, 0.3], device=device).view(1, 3, 1, 1)


def normalize(x, y):
    return (x.float() / 255 - mean) / std, y


def step(x, y):
    model.train()
    opt.zero_grad()
    out = model(x)
    loss = nn.functional.cross_entropy(out, y)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    opt.step()
    return loss.detach(), norm, (out.argmax(1) == y).sum()


run = pipeline(normalize, step)
for epoch in range(3):
    for l, n, c in run(zip(images, labels)):
        keep([l, n, c])
run.sync()
keep(model.state_dict())

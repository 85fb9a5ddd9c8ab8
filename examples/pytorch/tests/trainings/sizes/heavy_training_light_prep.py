# batches: 30
import torch, torch.nn as nn

B = 2048 if device == "cuda" else 8
net = nn.Sequential(
    *[m for _ in range(3) for m in (nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.1))], nn.Linear(512, 10)
).to(device)
opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
pin = (lambda t: t.pin_memory()) if device == "cuda" else (lambda t: t)
data = [(pin(torch.randint(0, 256, (B, 512), dtype=torch.uint8)), torch.randint(10, (B,))) for _ in range(N)]


def prep(x, y):
    x = x.float().div_(255)
    x.sub_(x.mean(1, keepdim=True))
    return x + 0.1 * torch.randn_like(x), y


def train(x, y):
    with torch.autocast(device, torch.bfloat16):
        l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(prep, train)
run_epochs(run, data, epochs=4)
run.sync()
keep(net.state_dict())

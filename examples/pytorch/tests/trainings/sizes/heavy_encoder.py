# batches: 30
import torch, torch.nn as nn

B = 4096 if device == "cuda" else 16
enc = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(512, 512), nn.GELU())]).to(device).eval()
head = nn.Linear(512, 10).to(device)
opt = torch.optim.AdamW(head.parameters(), 1e-3, capturable=device == "cuda")
pin = (lambda t: t.pin_memory()) if device == "cuda" else (lambda t: t)
data = [(pin(torch.randn(B, 512)), pin(torch.randint(10, (B,)))) for _ in range(N)]


@torch.no_grad()
def encode(x, y):
    return enc(x), y


def train(z, y):
    l = nn.functional.cross_entropy(head(z), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach(), z[::512, 0], y[:4]


run = pipeline(encode, train)
for e in range(4):
    for r in run(data):
        keep(list(r))
run.sync()
keep(head.state_dict())

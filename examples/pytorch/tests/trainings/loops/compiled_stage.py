import torch, torch.nn as nn

# batches: 30
enc = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 8)).to(device).eval()
head = nn.Linear(8, 2).to(device)
opt = torch.optim.SGD(head.parameters(), 0.1)
backend = "inductor" if device == "cuda" else "aot_eager"


@torch.compile(fullgraph=True, backend=backend)
def encode(x, y):
    with torch.no_grad():
        return enc(x * 2).tanh(), y


def train(z, y):
    l = nn.functional.cross_entropy(head(z), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


data = [(torch.randn(8, 12), torch.randint(2, (8,))) for _ in range(N)]
run = pipeline(encode, train)
run_epochs(run, data, epochs=3)
run.sync()
keep(head.state_dict())

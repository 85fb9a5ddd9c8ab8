import torch, torch.nn as nn

teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 5)).to(device).eval()
student = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 5)).to(device)
opt = torch.optim.AdamW(student.parameters(), 1e-2, fused=True, capturable=device == "cuda")
data = [(torch.randn(16, 10), torch.randint(5, (16,))) for i in range(N)]
T = 3.0


@torch.no_grad()
def teach(x, y):
    return x, y, (teacher(x) / T).softmax(1)


def learn(x, y, soft):
    o = student(x)
    l = nn.functional.kl_div((o / T).log_softmax(1), soft, reduction="batchmean") * T * T + nn.functional.cross_entropy(o, y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(teach, learn)
for e in range(4):
    if e == 2:
        T = 2.0
    for l in run(data):
        keep(l)
    run.sync()
keep(student.state_dict())

import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
w16 = torch.randn(4096, 64, device=device).half()


def change(e):
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = e % 2 == 0
    torch.backends.cuda.matmul.allow_fp16_accumulation = e == 3 if hasattr(torch.backends.cuda.matmul, "allow_fp16_accumulation") else False


def step(x, y):
    with torch.no_grad():
        aux = (x.half().repeat(1, 410)[:, :4096] @ w16).float()
    l = nn.functional.cross_entropy(net(x), y) + 1e-4 * aux.mean()
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach(), aux


run = pipeline(step)
for e in range(5):
    change(e)
    for l in run(data):
        keep(l)
    run.sync()
keep(net.state_dict())

import torch, torch.nn as nn

enc, dec = nn.Linear(10, 4).to(device), nn.Linear(4, 10).to(device)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], 0.05)
code = torch.randn(16, 4, device=device)
counts = torch.ones(16, device=device)
sums = code.clone()
data = [torch.randn(16, 10) for i in range(N)]


def step(x):
    z = enc(x)
    i = torch.cdist(z.detach(), code).argmin(1)
    q = code[i]
    onehot = nn.functional.one_hot(i, 16).float()
    l = nn.functional.mse_loss(dec(z + (q - z).detach()), x) + 0.25 * nn.functional.mse_loss(z, q)
    opt.zero_grad()
    l.backward()
    opt.step()
    with torch.no_grad():
        counts.mul_(0.99).add_(onehot.sum(0), alpha=0.01)
        sums.mul_(0.99).add_(onehot.T @ z, alpha=0.01)
        code.copy_(sums / counts[:, None])
    return l.detach(), i


run = pipeline(step)
for e in range(3):
    for l in run(data):
        keep(list(l))
run.sync()
keep(code)

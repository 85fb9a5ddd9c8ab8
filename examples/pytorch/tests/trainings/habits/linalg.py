import torch, torch.nn as nn

A = nn.Parameter(torch.eye(6, device=device))
opt = torch.optim.SGD([A], 0.01)
data = [torch.randn(4, 6) for i in range(N)]


def step(x):
    S = A @ A.T + 0.1 * torch.eye(6, device=x.device)
    L = torch.linalg.cholesky(S)
    z = torch.linalg.solve_triangular(L, x.T, upper=False)
    l = z.square().sum() + 2 * L.diagonal().log().sum()
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach(), torch.linalg.inv_ex(S.detach()).inverse


run = pipeline(step)
for e in range(2):
    for l in run(data):
        keep(list(l))
run.sync()
keep(A)

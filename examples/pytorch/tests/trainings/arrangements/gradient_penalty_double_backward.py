import torch, torch.nn as nn

D = nn.Sequential(nn.Linear(6, 32), nn.Softplus(), nn.Linear(32, 1)).to(device)
opt = torch.optim.RMSprop(D.parameters(), 1e-3, capturable=device == "cuda")
data = [(torch.randn(16, 6), torch.randn(16, 6)) for i in range(N)]


def step(r, f):
    eps = torch.rand(16, 1, device=r.device)
    x = (eps * r + (1 - eps) * f).requires_grad_()
    (g,) = torch.autograd.grad(D(x).sum(), x, create_graph=True)
    l = D(f).mean() - D(r).mean() + 10 * (g.norm(dim=1) - 1).square().mean()
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(D.state_dict())

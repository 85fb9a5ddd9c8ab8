import torch, torch.nn as nn

lin = nn.Linear(6, 6).to(device)
opt = torch.optim.SGD(lin.parameters(), 0.1)


def graph(i):
    n = 5 + i % 4
    A = (torch.rand(n, n) < 0.4).float()
    return torch.randn(n, 6), A.to_sparse() if i % 2 else A, torch.randn(n, 6)


data = [graph(i) for i in range(N)]


def step(x, A, t):
    l = nn.functional.mse_loss(torch.mm(A, lin(x)) if not A.is_sparse else torch.sparse.mm(A, lin(x)), t)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=2)
run.sync()
keep(lin.state_dict())

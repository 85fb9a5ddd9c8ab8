import torch, torch.nn as nn

# alternating training of two tasks with one trunk, batch by batch between two pipelines
trunk = nn.Linear(10, 16).to(device)
a, b = nn.Linear(16, 2).to(device), nn.Linear(16, 1).to(device)
opt = torch.optim.SGD([*trunk.parameters(), *a.parameters(), *b.parameters()], 0.1)
A = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]
B = [(torch.randn(8, 10), torch.randn(8, 1)) for i in range(N)]


def sa(x, y):
    l = nn.functional.cross_entropy(a(trunk(x).relu()), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


def sb(x, y):
    l = nn.functional.mse_loss(b(trunk(x).relu()), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


ra, rb = pipeline(sa), pipeline(sb)
for e in range(10):
    for l in ra(A[:20]):
        keep(l)
    ra.sync()
    for l in rb(B[:15]):
        keep(l)
    rb.sync()
keep(trunk.state_dict())

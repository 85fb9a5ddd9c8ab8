import torch, torch.nn as nn

body = nn.Sequential(nn.Linear(10, 20), nn.ReLU()).to(device)
head = nn.Linear(20, 2).to(device)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,)), i) for i in range(N)]


def step(x, y, i):
    if i == N // 2:
        body.requires_grad_(False)
    if i == 0:
        body.requires_grad_(True)
    l = nn.functional.cross_entropy(head(body(x)), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(body.state_dict())

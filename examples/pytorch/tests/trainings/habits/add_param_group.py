import torch, torch.nn as nn

body, head = nn.Linear(10, 20).to(device), nn.Linear(20, 2).to(device)
opt = torch.optim.SGD(head.parameters(), 0.1, momentum=0.9)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(head(body(x).relu()), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(4):
    if e == 1:
        opt.zero_grad()
        body.zero_grad()
        opt.add_param_group({"params": body.parameters(), "lr": 0.01})
    if e == 3:
        opt.state.clear()
    for l in run(data):
        keep(l)
    run.sync()
keep(body.state_dict())

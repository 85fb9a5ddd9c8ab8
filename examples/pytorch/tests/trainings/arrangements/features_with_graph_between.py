import torch, torch.nn as nn

body, head = nn.Sequential(nn.Linear(10, 20), nn.Tanh()).to(device), nn.Linear(20, 2).to(device)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def forward(x, y):
    return body(x), y


def backward(z, y):
    l = nn.functional.cross_entropy(head(z), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(forward, backward)
run_epochs(run, data, epochs=3)
run.sync()
keep(body.state_dict())

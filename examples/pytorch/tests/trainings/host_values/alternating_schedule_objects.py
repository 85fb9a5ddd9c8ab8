import torch, torch.nn as nn

# two optimizers used in turns by a number in the batch; one scheduler each, stepped inside
net = nn.Linear(10, 3).to(device)
a = torch.optim.SGD(net.parameters(), 0.1)
b = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
sa = torch.optim.lr_scheduler.StepLR(a, 10, 0.9)
data = [(torch.randn(8, 10), torch.randint(3, (8,)), i % 2) for i in range(N)]


def step(x, y, which):
    o = (a, b)[which]
    l = nn.functional.cross_entropy(net(x), y)
    o.zero_grad()
    l.backward()
    o.step()
    if which == 0:
        sa.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=4)
run.sync()
keep(net.state_dict())

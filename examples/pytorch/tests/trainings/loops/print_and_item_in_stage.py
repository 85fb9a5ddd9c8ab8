import torch, torch.nn as nn

net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
log = []
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    log.append(l.item())
    if len(log) % 10 == 0:
        print("loss", log[-1])
    return l.item()


run = pipeline(step)
run_epochs(run, data, epochs=2)
run.sync()
keep(log)

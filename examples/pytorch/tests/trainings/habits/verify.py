import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step, verify=True, state=[net, opt])
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())
keep(opt.state_dict()["state"])

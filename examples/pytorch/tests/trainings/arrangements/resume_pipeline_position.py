import torch, torch.nn as nn, copy
from torch.utils.data import DataLoader, TensorDataset

# schedules: serial overlapped graphed automatic
X, Y = torch.randn(8 * N, 10), torch.randint(2, (8 * N,))
net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)


def loader():
    return DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(3))


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


if SCHEDULE in ("plain", "again"):
    for e in range(2):
        if e == 0:
            ld = loader()
        for x, y in ld:
            step(x.to(device), y.to(device))
else:
    run = pipeline(step)
    ld = loader()
    state = None
    for i, l in enumerate(run(ld)):
        if i == 20:
            run.sync()
            state = copy.deepcopy((run.state_dict(), net.state_dict(), opt.state_dict()))
            break
    run.sync()
    for l in run(ld):
        pass  # something else happens to the weights
    net.load_state_dict(state[1])
    opt.load_state_dict(state[2])
    ld = loader()
    run = pipeline(step)
    run.load_state_dict(state[0])
    for l in run(ld):
        pass
    for l in run(ld):
        pass
    run.sync()
keep(net.state_dict())

import torch, torch.nn as nn
from torch.optim.swa_utils import AveragedModel, SWALR, update_bn

model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4)).to(device)
swa = AveragedModel(model)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
sched = SWALR(opt, swa_lr=0.01, anneal_epochs=2)
data = [(torch.randn(8, 16), torch.randint(4, (8,))) for i in range(N)]


def step(x, y):
    model.train()
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    return loss.detach()


run = pipeline(step)
for e in range(4):
    for l in run(data):
        keep(l)
    run.sync()
    if e >= 1:
        swa.update_parameters(model)
        sched.step()
update_bn([x for x, _ in data], swa, device=device)
keep(swa.state_dict())

import torch, torch.nn as nn

enc, dec = nn.Linear(10, 8).to(device), nn.Linear(8, 10).to(device)
opt = torch.optim.SGD([*enc.parameters(), *dec.parameters()], 0.05)
tau = 1.0
data = [torch.randn(16, 10) for i in range(N)]


def step(x):
    l = nn.functional.mse_loss(dec(nn.functional.gumbel_softmax(enc(x), tau=tau, hard=True)), x)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(4):
    for l in run(data):
        keep(l)
    run.sync()
    tau *= 0.7
keep(enc.state_dict())

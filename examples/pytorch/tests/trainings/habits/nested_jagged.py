import torch, torch.nn as nn

lin = nn.Linear(6, 2).to(device)
opt = torch.optim.SGD(lin.parameters(), 0.1)
data = [
    (torch.nested.nested_tensor([torch.randn(2 + (i + j) % 3, 6) for j in range(3)], layout=torch.jagged), torch.randn(3, 2))
    for i in range(N)
]


def step(nt, t):
    o = lin(nt.values())
    off = nt.offsets()
    s = torch.cat([torch.zeros(1, 2, device=o.device), o.cumsum(0)])
    sums = s[off[1:]] - s[off[:-1]]
    l = nn.functional.mse_loss(sums, t)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=2)
run.sync()
keep(lin.state_dict())

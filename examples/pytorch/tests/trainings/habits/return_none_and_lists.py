import torch, torch.nn as nn

net = nn.Linear(10, 3).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
history = {"loss": torch.zeros(N * 4, device=device)}
at = torch.zeros((), dtype=torch.long, device=device)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    history["loss"].index_copy_(0, at[None], l.detach()[None])
    at.add_(1)


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(history["loss"])

import torch, torch.nn as nn

# schedules: serial automatic prefetch
net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def forward(x, y):
    return nn.functional.cross_entropy(net(x), y)


run = pipeline(forward)
for e in range(3):
    for l in run(data):
        opt.zero_grad()
        l.backward()
        opt.step()
        keep(l.detach())
run.sync()
keep(net.state_dict())

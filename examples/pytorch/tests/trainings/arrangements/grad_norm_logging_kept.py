import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 2)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    grads = [p.grad for p in net.parameters()]  # returned as they are
    opt.step()
    return l.detach(), grads, {n: p.detach() for n, p in net.named_parameters()}


run = pipeline(step)
for e in range(3):
    for l, g, w in run(data):
        keep([l, [u.clone() for u in g], {k: v.clone() for k, v in w.items()}])
run.sync()

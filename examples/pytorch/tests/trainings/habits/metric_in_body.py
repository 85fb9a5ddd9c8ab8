import torch, torch.nn as nn

net = nn.Linear(10, 3).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    o = net(x)
    l = nn.functional.cross_entropy(o, y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach(), o.detach(), y


run = pipeline(step)
for e in range(3):
    total, correct, n, avg = 0.0, 0, 0, torch.zeros((), device=device)
    for i, (l, o, y) in enumerate(run(data)):
        avg = avg + (l - avg) / (i + 1)
        total += l.item() * len(y)
        correct += (o.argmax(1) == y).sum().item()
        n += len(y)
        if i % 20 == 0:
            print(f"{i}: {total / n:.4f} {correct / n:.3f}")
    keep(total / n)
    keep(correct / n)
    keep(avg)

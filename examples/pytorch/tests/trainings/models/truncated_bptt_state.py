import torch, torch.nn as nn

rnn = nn.RNN(5, 12, batch_first=True).to(device)
out = nn.Linear(12, 1).to(device)
opt = torch.optim.SGD([*rnn.parameters(), *out.parameters()], 0.05)
h = None
data = [(torch.randn(4, 7, 5), torch.randn(4, 7, 1)) for _ in range(N)]


def step(x, y):
    global h
    o, hn = rnn(x, h)
    l = nn.functional.mse_loss(out(o), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    h = hn.detach()
    return l.detach()


run = pipeline(step)
for _ in range(3):
    h = None
    for l in run(data):
        keep(l)
    run.sync()
keep(h)

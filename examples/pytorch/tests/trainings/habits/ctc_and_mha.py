import torch, torch.nn as nn

mha = nn.MultiheadAttention(8, 2, batch_first=True, dropout=0.1).to(device)
out = nn.Linear(8, 5).to(device)
opt = torch.optim.SGD([*mha.parameters(), *out.parameters()], 0.1)
data = [(torch.randn(3, 12, 8), torch.randint(1, 5, (3, 4)), torch.tensor([12, 11, 10]), torch.tensor([4, 3, 2])) for i in range(N)]


def step(x, t, il, tl):
    h, w = mha(x, x, x)
    lp = out(h).log_softmax(-1).transpose(0, 1)
    l = nn.functional.ctc_loss(lp, t, il, tl)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach(), w.detach()


run = pipeline(step)
for e in range(2):
    for l in run(data):
        keep(list(l))
run.sync()
keep(mha.state_dict())

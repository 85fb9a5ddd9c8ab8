import torch, torch.nn as nn


class LM(nn.Module):
    def __init__(s):
        super().__init__()
        s.e = nn.Embedding(30, 12)
        s.r = nn.LSTM(12, 12, batch_first=True)
        s.o = nn.Linear(12, 30)

    def forward(s, t, h):
        o, h = s.r(s.e(t), h)
        return s.o(o), h


m = LM().to(device)
opt = torch.optim.SGD(m.parameters(), 0.5)
text = torch.randint(30, (4, 7 * N + 5))


class Chunks:
    def __iter__(s):
        for i in range(0, text.shape[1] - 1, 7):
            L = min(7, text.shape[1] - 1 - i)
            yield text[:, i : i + L], text[:, i + 1 : i + 1 + L], i == 0


hidden = None


def step(x, y, first):
    global hidden
    if first:
        hidden = (torch.zeros(1, 4, 12, device=x.device), torch.zeros(1, 4, 12, device=x.device))
    hidden = tuple(h.detach() for h in hidden)
    o, hidden = m(x, hidden)
    l = nn.functional.cross_entropy(o.flatten(0, 1), y.flatten())
    opt.zero_grad()
    l.backward()
    nn.utils.clip_grad_norm_(m.parameters(), 0.25)
    opt.step()
    return l.detach()


run = pipeline(step)
chunks = Chunks()
run_epochs(run, chunks, epochs=3)
run.sync()
keep(m.state_dict())

import torch, torch.nn as nn, copy


class MoCo(nn.Module):
    def __init__(s):
        super().__init__()
        s.q = nn.Linear(10, 8)
        s.k = copy.deepcopy(s.q).requires_grad_(False)
        s.register_buffer("queue", nn.functional.normalize(torch.randn(8, 64), dim=0))
        s.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def enqueue(s, keys):
        p = int(s.ptr)
        s.queue[:, p : p + len(keys)] = keys.T
        s.ptr[0] = (p + len(keys)) % 64

    def forward(s, a, b):
        q = nn.functional.normalize(s.q(a), dim=1)
        with torch.no_grad():
            for x, y in zip(s.q.parameters(), s.k.parameters()):
                y.mul_(0.99).add_(x, alpha=0.01)
            k = nn.functional.normalize(s.k(b), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ s.queue.clone().detach()], 1) / 0.2
        s.enqueue(k)
        return logits, torch.zeros(len(q), dtype=torch.long, device=q.device)


m = MoCo().to(device)
opt = torch.optim.SGD(m.q.parameters(), 0.1)
data = [(torch.randn(8, 10), torch.randn(8, 10)) for i in range(N)]


def step(a, b):
    l = nn.functional.cross_entropy(*m(a, b))
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=2)
run.sync()
keep(m.state_dict())

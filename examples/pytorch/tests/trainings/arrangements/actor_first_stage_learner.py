import torch, torch.nn as nn

policy = nn.Linear(6, 3).to(device)
opt = torch.optim.SGD(policy.parameters(), 0.05)
data = [torch.randn(16, 6) for _ in range(N)]


def act(s):
    with torch.no_grad():
        p = policy(s).softmax(-1)
        a = torch.multinomial(p, 1).squeeze(1)
    return s, a, (a == 1).float()


def learn(s, a, r):
    lp = policy(s).log_softmax(-1).gather(1, a[:, None]).squeeze(1)
    l = -(lp * r).mean()
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach(), r.mean()


run = pipeline(act, learn)
for _ in range(3):
    for l in run(data):
        keep(list(l))
run.sync()
keep(policy.state_dict())

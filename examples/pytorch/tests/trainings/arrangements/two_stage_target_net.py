import torch, torch.nn as nn, copy

q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
target = copy.deepcopy(q).requires_grad_(False)
opt = torch.optim.SGD(q.parameters(), 0.02)
steps = 0
data = [(torch.randn(16, 4), torch.randint(2, (16,)), torch.randn(16), torch.randn(16, 4)) for _ in range(N)]


def learn(s, a, r, s2):
    global steps
    with torch.no_grad():
        y = r + 0.9 * target(s2).amax(1)
    l = nn.functional.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    steps += 1
    if steps % 25 == 0:
        target.load_state_dict(q.state_dict())
    return l.detach()


run = pipeline(learn)
run_epochs(run, data, epochs=3)
run.sync()
keep(target.state_dict())

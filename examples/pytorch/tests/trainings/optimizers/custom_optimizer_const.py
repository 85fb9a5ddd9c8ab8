import torch, torch.nn as nn


class SignSGD(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for g in self.param_groups:
            for p in g["params"]:
                s = self.state.setdefault(p, {})
                if "m" not in s:
                    s["m"] = torch.zeros_like(p)
                s["m"].mul_(0.9).add_(p.grad)
                p.sub_(s["m"].sign() * g["lr"])


model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 1)).to(device)
opt = SignSGD(model.parameters(), 1e-3)
data = [(torch.randn(8, 10), torch.randn(8, 1)) for _ in range(N)]


def step(x, y):
    loss = nn.functional.huber_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach()


run = pipeline(step)
for e in range(3):
    for l in run(data):
        keep(l)
    run.sync()
    for g in opt.param_groups:
        g["lr"] *= 0.5
keep(model.state_dict())

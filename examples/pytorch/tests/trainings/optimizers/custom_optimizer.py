import torch, torch.nn as nn


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), wd=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, wd=wd))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                    state["t"] = 0
                state["t"] += 1
                lr = group["lr"] / (1 + 0.01 * state["t"])
                m = state["m"]
                p.mul_(1 - lr * group["wd"]).add_(torch.sign(m * b1 + p.grad * (1 - b1)), alpha=-lr)
                m.lerp_(p.grad, 1 - b2)


model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 1)).to(device)
opt = Lion(model.parameters(), 1e-2, wd=0.1)
data = [(torch.randn(8, 10), torch.randn(8, 1)) for _ in range(N)]


def step(x, y):
    loss = nn.functional.smooth_l1_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(model.state_dict())

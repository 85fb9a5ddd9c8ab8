import torch, torch.nn as nn


class Lars(torch.optim.SGD):
    def step(self, closure=None):
        with torch.no_grad():
            for g in self.param_groups:
                for p in g["params"]:
                    if p.grad is not None and p.ndim > 1:
                        pn, gn = p.norm(), p.grad.norm()
                        p.grad.mul_(torch.where((pn > 0) & (gn > 0), 0.02 * pn / (gn + 1e-9), torch.ones_like(pn)))
        return super().step(closure)


net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3)).to(device)
opt = Lars(net.parameters(), 1.0, momentum=0.9)
sched = torch.optim.lr_scheduler.SequentialLR(
    opt, [torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=2), torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)], [2]
)
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
for e in range(4):
    for l in run(data):
        keep(l)
    run.sync()
    sched.step()
keep(net.state_dict())

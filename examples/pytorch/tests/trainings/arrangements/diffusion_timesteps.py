import torch, torch.nn as nn, math

betas = torch.linspace(1e-4, 0.02, 50, device=device)
abar = (1 - betas).cumprod(0)


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.t = nn.Embedding(50, 8)
        s.f = nn.Sequential(nn.Linear(10 + 8, 32), nn.SiLU(), nn.Linear(32, 10))

    def forward(s, x, t):
        return s.f(torch.cat([x, s.t(t)], 1))


net = Net().to(device)
opt = torch.optim.AdamW(net.parameters(), 1e-3, capturable=device == "cuda", amsgrad=True)


def noise(x):
    t = torch.randint(50, (len(x),), device=x.device)
    e = torch.randn_like(x)
    a = abar[t][:, None]
    return a.sqrt() * x + (1 - a).sqrt() * e, e, t


def train(x, e, t):
    l = nn.functional.mse_loss(net(x, t), e)
    opt.zero_grad(set_to_none=True)
    l.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
    opt.step()
    return l.detach()


data = torch.randn(N, 16, 10)
run = pipeline(noise, train)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

import torch, torch.nn as nn

enc, dec = nn.Linear(10, 8).to(device), nn.Linear(4, 10).to(device)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 1e-2, capturable=device == "cuda")
data = [torch.randn(16, 10) for _ in range(N)]


def step(x):
    mu, logvar = enc(x).chunk(2, 1)
    q = torch.distributions.Normal(mu, (0.5 * logvar).exp(), validate_args=False)
    z = q.rsample()
    kl = (
        torch.distributions.kl_divergence(q, torch.distributions.Normal(torch.zeros_like(mu), torch.ones_like(mu), validate_args=False))
        .sum(1)
        .mean()
    )
    l = nn.functional.mse_loss(dec(z), x) + 0.1 * kl
    opt.zero_grad()
    l.backward()
    opt.step()
    return {"loss": l.detach(), "kl": kl.detach()}


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(enc.state_dict())

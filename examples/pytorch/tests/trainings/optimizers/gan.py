import torch, torch.nn as nn

G = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)).to(device)
cap = device == "cuda"
oG = torch.optim.Adam(G.parameters(), 1e-3, betas=(0.5, 0.99), capturable=cap)
oD = torch.optim.Adam(D.parameters(), 1e-3, betas=(0.5, 0.99), capturable=cap)
bce = nn.BCEWithLogitsLoss()
data = [torch.randn(16, 2) * 0.5 + 1 for _ in range(N)]


def discriminate(real):
    z = torch.randn(real.shape[0], 8, device=device)
    fake = G(z).detach()
    r, f = D(real), D(fake)
    loss = bce(r, torch.ones_like(r)) + bce(f, torch.zeros_like(f))
    oD.zero_grad()
    loss.backward()
    oD.step()
    return z, loss.detach()


def generate(z, lossD):
    out = D(G(z))
    loss = bce(out, torch.ones_like(out))
    oG.zero_grad()
    loss.backward()
    oG.step()
    return lossD, loss.detach()


run = pipeline(discriminate, generate)
run_epochs(run, data, epochs=3)
run.sync()
keep(G.state_dict())
keep(D.state_dict())

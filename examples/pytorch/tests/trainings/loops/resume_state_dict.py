import torch, torch.nn as nn, io

data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]


def build():
    net = nn.Sequential(nn.Linear(10, 10), nn.Dropout(0.2), nn.Linear(10, 2)).to(device)
    opt = torch.optim.Adam(net.parameters(), 1e-2, capturable=device == "cuda")

    def step(x, y):
        l = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        l.backward()
        opt.step()
        return l.detach()

    return net, opt, pipeline(step)


net, opt, run = build()
for l in run(data):
    keep(l)
run.sync()
f = io.BytesIO()
torch.save({"n": net.state_dict(), "o": opt.state_dict()}, f)
f.seek(0)
net, opt, run = build()
for l in run(data[:30]):
    keep(l)
run.sync()
c = torch.load(f)
net.load_state_dict(c["n"])
opt.load_state_dict(c["o"])
run_epochs(run, data, epochs=2)
run.sync()
keep(net.state_dict())

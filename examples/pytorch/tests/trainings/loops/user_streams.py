# cuda only
import torch, torch.nn as nn

a, b = nn.Linear(64, 64).to(device), nn.Linear(64, 64).to(device)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], 0.1)
side = torch.cuda.Stream()
data = [torch.randn(32, 64) for i in range(N)]


def step(x):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        u = a(x).tanh()
        x.record_stream(side)
    v = b(x).sin()
    torch.cuda.current_stream().wait_stream(side)
    u.record_stream(torch.cuda.current_stream())
    l = (u - v).square().mean()
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(a.state_dict())

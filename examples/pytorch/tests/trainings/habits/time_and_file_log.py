import torch, torch.nn as nn, time, io

net = nn.Linear(10, 3).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)
f = io.StringIO()
data = [(torch.randn(8, 10), torch.randint(3, (8,))) for i in range(N)]
times = []


def step(x, y):
    t = time.perf_counter()
    l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    times.append(time.perf_counter() - t)
    f.write("x")
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=2)
run.sync()
keep(net.state_dict())
keep(len(times))
keep(len(f.getvalue()))

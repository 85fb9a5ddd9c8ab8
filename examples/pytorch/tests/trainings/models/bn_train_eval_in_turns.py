import torch, torch.nn as nn

net = nn.Sequential(nn.Conv1d(4, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14, 3)).to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
data = [(torch.randn(8, 4, 16), torch.randint(3, (8,)), i % 8 < 6) for i in range(N)]


def step(x, y, training):
    net.train(training)
    with torch.set_grad_enabled(training):
        l = nn.functional.cross_entropy(net(x), y)
    if training:
        opt.zero_grad()
        l.backward()
        opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

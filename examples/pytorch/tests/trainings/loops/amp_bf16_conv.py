import torch, torch.nn as nn

torch.backends.cudnn.deterministic = True
net = nn.Sequential(
    nn.Conv2d(3, 16, 3),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 4),
).to(device, memory_format=torch.channels_last)
opt = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, weight_decay=1e-3)
data = [(torch.rand(4, 3, 16, 16).contiguous(memory_format=torch.channels_last), torch.randint(4, (4,))) for i in range(N)]


def step(x, y):
    with torch.autocast(device, dtype=torch.bfloat16):
        l = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad(set_to_none=True)
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(net.state_dict())

# cuda only
# batches: 40
# schedules: serial automatic
import torch, torch.nn as nn

B = 4096
net = nn.Linear(512, 10).to(device)
opt = torch.optim.SGD(net.parameters(), 0.05)
buf = torch.empty(B, 512, pin_memory=True)


class L:
    def __iter__(s):
        for i in range(N):
            buf.fill_(i / N)
            buf[:, ::7] += 1
            yield buf


def train(x):
    for _ in range(5):
        x = x @ torch.eye(512, device=device)
    l = net(x).square().mean()
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(train)
loader = L()
run_epochs(run, loader, epochs=3)
run.sync()
keep(net.state_dict())

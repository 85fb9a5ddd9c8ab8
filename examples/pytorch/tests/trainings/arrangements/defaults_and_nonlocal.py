import torch, torch.nn as nn


def main():
    net = nn.Linear(10, 2).to(device)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]
    ema, warm = None, 20
    seen = 0

    def step(x, y, temperature=2.0):
        nonlocal ema, seen
        seen += 1
        l = nn.functional.cross_entropy(net(x) / (temperature if seen > warm else 1.0), y)
        opt.zero_grad()
        l.backward()
        opt.step()
        ema = l.detach() if ema is None else 0.9 * ema + 0.1 * l.detach()
        return ema

    run = pipeline(step)
    for e in range(3):
        for l in run(data):
            keep(l)
    run.sync()
    keep(net.state_dict())
    keep(ema)


main()

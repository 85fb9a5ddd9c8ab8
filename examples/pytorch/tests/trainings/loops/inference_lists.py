import torch, torch.nn as nn

net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3)).to(device).eval()
data = torch.randn(N, 8, 10)


def prep(x):
    return (x - x.mean()) / x.std()


@torch.inference_mode()
def predict(x):
    return net(x)


def post(z):
    return z.max(1)


run = pipeline(prep, predict, post)
with torch.inference_mode():
    for e in range(3):
        for p in run(data):
            keep([p.values, p.indices])

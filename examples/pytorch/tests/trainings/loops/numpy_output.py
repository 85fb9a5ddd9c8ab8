import torch, torch.nn as nn, numpy as np

net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3)).to(device).eval()
data = [np.random.randn(8, 10).astype(np.float32) for _ in range(N)]


@torch.inference_mode()
def predict(x):
    return net(x).softmax(-1).cpu().numpy()


run = pipeline(predict)
out = []
for e in range(2):
    for p in run(data):
        out.append(p)
keep(np.concatenate(out))

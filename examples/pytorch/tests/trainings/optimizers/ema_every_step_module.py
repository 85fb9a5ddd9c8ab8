import torch, torch.nn as nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to(device)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9), use_buffers=True)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
data = [(torch.randn(8, 16), torch.randint(4, (8,))) for i in range(N)]


def learn(x, y):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    ema.update_parameters(model)
    return x, loss.detach()


@torch.no_grad()
def look(x, loss):
    return loss, ema(x).softmax(-1)


run = pipeline(learn, look)
run_epochs(run, data, epochs=3)
run.sync()
keep(ema.state_dict())

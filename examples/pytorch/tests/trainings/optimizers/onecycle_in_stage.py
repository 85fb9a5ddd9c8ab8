import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

X = torch.randn(N * 16, 10)
Y = X @ torch.randn(10, 1)
loader = DataLoader(TensorDataset(X, Y), batch_size=16)
model = nn.Sequential(nn.Linear(10, 64), nn.GELU(), nn.Linear(64, 1)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=3 * len(loader))
criterion = nn.MSELoss()


def train_step(x, y):
    loss = criterion(model(x), y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    return loss


run = pipeline(train_step)
for epoch in range(3):
    for loss in run(loader):
        keep(loss.detach())
run.sync()
keep(model.state_dict())
keep(scheduler.get_last_lr())

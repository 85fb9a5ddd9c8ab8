import torch, torch.nn as nn


class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.f = nn.Sequential(nn.Linear(10, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Dropout(0.5))
        s.h = nn.Linear(40, 3)

    def forward(s, x):
        return s.h(s.f(x))


class Trainer:
    def __init__(self):
        self.model = Net().to(device)
        self.opt = torch.optim.SGD(self.model.parameters(), 0.1)
        self.best = 1e9
        self.train_run = pipeline(self.train_step)
        self.val_run = pipeline(self.val_step)

    def train_step(self, x, y):
        self.opt.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.opt.step()
        return loss.detach()

    @torch.no_grad()
    def val_step(self, x, y):
        return nn.functional.cross_entropy(self.model(x), y, reduction="sum"), len(y)

    def fit(self, train, val, epochs):
        for e in range(epochs):
            self.model.train()
            keep([l for l in self.train_run(train)])
            self.train_run.sync()
            self.model.eval()
            total = 0
            n = 0
            for s, k in self.val_run(val):
                total += s.item()
                n += k
            keep(total / n)
            if total / n < self.best:
                self.best = total / n
                self.state = {k: v.clone() for k, v in self.model.state_dict().items()}


t = Trainer()
tr = [(torch.randn(8, 10), torch.randint(3, (8,))) for _ in range(N)]
va = [(torch.randn(20, 10), torch.randint(3, (20,))) for _ in range(N // 3)]
t.fit(tr, va, 4)
keep(t.state)

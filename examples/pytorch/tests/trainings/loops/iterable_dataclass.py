import torch, torch.nn as nn
from dataclasses import dataclass
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


@dataclass
class Batch:
    x: torch.Tensor
    y: torch.Tensor
    ids: list


class Stream(IterableDataset):
    def __iter__(s):
        w = get_worker_info()
        k, n = (w.id, w.num_workers) if w else (0, 1)
        for i in range(k, 4 * N, n):
            g = torch.Generator().manual_seed(i)
            yield i, torch.randn(10, generator=g)


def collate(items):
    return Batch(torch.stack([v for _, v in items]), torch.tensor([i % 2 for i, _ in items]), [f"s{i}" for i, _ in items])


loader = DataLoader(Stream(), batch_size=4, collate_fn=collate, num_workers=2)
net = nn.Linear(10, 2).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)


def step(b):
    l = nn.functional.cross_entropy(net(b.x), b.y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach(), b.ids


run = pipeline(step)
for e in range(3):
    for l in run(loader):
        keep(list(l))
run.sync()
keep(net.state_dict())

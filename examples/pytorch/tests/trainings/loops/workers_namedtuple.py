import torch, torch.nn as nn, collections
from torch.utils.data import DataLoader, Dataset

Pair = collections.namedtuple("Pair", "image label", module=__name__)


class D(Dataset):
    def __len__(s):
        return 8 * N + 5

    def __getitem__(s, i):
        g = torch.Generator().manual_seed(i)
        return Pair(torch.rand(3, 6, 6, generator=g), i % 4)


loader = DataLoader(
    D(),
    batch_size=8,
    num_workers=2,
    pin_memory=device == "cuda",
    shuffle=True,
    generator=torch.Generator().manual_seed(2),
    persistent_workers=True,
)
net = nn.Sequential(nn.Flatten(), nn.Linear(108, 4)).to(device)
opt = torch.optim.SGD(net.parameters(), 0.1)


def step(*b):
    b = b[0] if len(b) == 1 else Pair(*b)
    l = nn.functional.cross_entropy(net(b.image), b.label)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, loader, epochs=3)
run.sync()
keep(net.state_dict())
del loader

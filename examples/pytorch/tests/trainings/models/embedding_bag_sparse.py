import torch, torch.nn as nn

bag = nn.EmbeddingBag(100, 8, sparse=True, mode="sum").to(device)
fc = nn.Linear(8, 2).to(device)
so, do = torch.optim.SparseAdam(bag.parameters(), 1e-2), torch.optim.SGD(fc.parameters(), 0.1)


def sample():
    n = torch.randint(1, 5, (6,))
    return torch.randint(100, (int(n.sum()),)), torch.cat([torch.zeros(1, dtype=torch.long), n.cumsum(0)[:-1]]), torch.randint(2, (6,))


data = [sample() for _ in range(N)]


def step(ids, offsets, y):
    l = nn.functional.cross_entropy(fc(bag(ids, offsets)), y)
    so.zero_grad()
    do.zero_grad()
    l.backward()
    so.step()
    do.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(bag.state_dict())
keep(fc.state_dict())

import torch, torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

lstm = nn.LSTM(8, 16, bidirectional=True, batch_first=True).to(device)
head = nn.Linear(32, 2).to(device)
opt = torch.optim.Adam([*lstm.parameters(), *head.parameters()], 1e-2)


def collate(seqs):
    return pad_sequence(seqs, batch_first=True), torch.tensor([len(s) for s in seqs]).tolist(), torch.tensor([len(s) % 2 for s in seqs])


data = [collate([torch.randn(int(torch.randint(2, 9, ())), 8) for _ in range(4)]) for _ in range(N)]


def step(x, lengths, y):
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    _, (h, _) = lstm(packed)
    l = nn.functional.cross_entropy(head(torch.cat([h[0], h[1]], -1)), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(lstm.state_dict())

import torch, torch.nn as nn, torch.nn.functional as F

D, H, T = 16, 2, 24


class Block(nn.Module):
    def __init__(s):
        super().__init__()
        s.qkv = nn.Linear(D, 3 * D)
        s.o = nn.Linear(D, D)
        s.k = s.v = None

    def forward(s, x):
        q, k, v = [u.view(*u.shape[:2], H, D // H).transpose(1, 2) for u in s.qkv(x).chunk(3, -1)]
        s.k = k if s.k is None else torch.cat([s.k, k], 2)
        s.v = v if s.v is None else torch.cat([s.v, v], 2)
        return s.o(F.scaled_dot_product_attention(q, s.k, s.v).transpose(1, 2).flatten(2))


b = Block().to(device)
emb = nn.Embedding(20, D).to(device)


@torch.no_grad()
def decode(prompt):
    b.k = b.v = None
    x = prompt
    outs = []
    for _ in range(5):
        y = b(emb(x))
        x = (y[:, -1:] @ emb.weight.T).argmax(-1)
        outs.append(x)
    return torch.cat(outs, 1)


run = pipeline(decode)
for _ in range(3):
    for r in run([torch.randint(20, (2, 6)) for _ in range(N)]):
        keep(r)

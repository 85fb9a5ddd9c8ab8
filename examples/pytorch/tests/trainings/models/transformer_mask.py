import torch, torch.nn as nn

enc = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True, norm_first=True), 2, enable_nested_tensor=False
).to(device)
emb = nn.Embedding(30, 16, padding_idx=0).to(device)
head = nn.Linear(16, 30).to(device)
ps = [*enc.parameters(), *emb.parameters(), *head.parameters()]
opt = torch.optim.AdamW(ps, 1e-3, capturable=device == "cuda")


def doc(n, L):
    t = torch.randint(1, 30, (n, L))
    t[0, L // 2 :] = 0
    return t


data = [doc(4, (8, 12)[i % 7 == 3]) for i in range(N)]


def step(t):
    mask = nn.Transformer.generate_square_subsequent_mask(t.shape[1] - 1, device=t.device)
    x = t[:, :-1]
    z = enc(emb(x), mask=mask, src_key_padding_mask=torch.where(x == 0, float("-inf"), 0.0), is_causal=True)
    l = nn.functional.cross_entropy(head(z).flatten(0, 1), t[:, 1:].flatten(), ignore_index=0)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(enc.state_dict())

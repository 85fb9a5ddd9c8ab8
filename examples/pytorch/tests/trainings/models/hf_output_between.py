import torch, torch.nn as nn
from transformers import GPT2Config, GPT2Model, BatchEncoding

gpt = GPT2Model(GPT2Config(vocab_size=50, n_positions=32, n_embd=16, n_layer=1, n_head=2)).to(device).eval()
head = nn.Linear(16, 50).to(device)
opt = torch.optim.SGD(head.parameters(), 0.1)
data = [BatchEncoding({"input_ids": torch.randint(50, (2, 6)), "attention_mask": torch.ones(2, 6, dtype=torch.long)}) for _ in range(N)]


def features(batch):
    with torch.no_grad():
        return gpt(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], use_cache=False), batch["input_ids"]


def learn(out, ids):
    l = nn.functional.cross_entropy(head(out.last_hidden_state[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(features, learn)
run_epochs(run, data, epochs=2)
run.sync()
keep(head.state_dict())

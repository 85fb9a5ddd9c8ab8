import torch
from transformers import BertConfig, BertForSequenceClassification

cfg = BertConfig(
    vocab_size=60,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=32,
    num_labels=3,
)
model = BertForSequenceClassification(cfg).to(device).train()
opt = torch.optim.AdamW(model.parameters(), 1e-3)


def enc(L):
    m = torch.ones(4, L, dtype=torch.long)
    m[1, L // 2 :] = 0
    return {"input_ids": torch.randint(60, (4, L)), "attention_mask": m, "labels": torch.randint(3, (4,))}


data = [enc((8, 12, 12)[i % 3]) for i in range(N)]


def step(batch):
    out = model(**batch)
    opt.zero_grad()
    out.loss.backward()
    opt.step()
    return out.loss.detach(), out.logits.detach()


run = pipeline(step)
run_epochs(run, data, epochs=2)
run.sync()
keep(model.state_dict())

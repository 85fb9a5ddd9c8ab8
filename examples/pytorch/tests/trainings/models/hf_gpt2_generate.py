import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = (
    GPT2LMHeadModel(
        GPT2Config(vocab_size=50, n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=49, pad_token_id=49)
    )
    .to(device)
    .eval()
)


@torch.no_grad()
def gen(ids):
    return model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=4, do_sample=False)


run = pipeline(gen)
for out in run([torch.randint(49, (2, 5)) for _ in range(24)]):
    keep(out)

import torch, torch.nn as nn
from transformers import BertConfig, BertModel

bert = (
    BertModel(
        BertConfig(
            vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, max_position_embeddings=32
        ),
        add_pooling_layer=False,
    )
    .to(device)
    .eval()
)
probe = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
opt = torch.optim.Adam(probe.parameters(), 1e-2, capturable=device == "cuda")
data = [(torch.randint(60, (4, 8)), torch.randint(2, (4,))) for _ in range(N)]


@torch.no_grad()
def encode(ids, y):
    return bert(input_ids=ids).last_hidden_state[:, 0], y


def train(z, y):
    opt.zero_grad(set_to_none=True)
    l = nn.functional.cross_entropy(probe(z), y)
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(encode, train)
run_epochs(run, data, epochs=3)
run.sync()
keep(probe.state_dict())

import torch, torch.nn as nn

gate = nn.Linear(10, 3).to(device)
experts = nn.ModuleList(nn.Linear(10, 4) for _ in range(3)).to(device)
opt = torch.optim.SGD([*gate.parameters(), *experts.parameters()], 0.1)
data = [(torch.randn(8, 10), torch.randint(4, (8,))) for i in range(N)]


def step(x, y):
    w = gate(x).softmax(1)
    top = w.argmax(1)
    out = torch.zeros(len(x), 4, device=x.device)
    for i, ex in enumerate(experts):
        idx = (top == i).nonzero().squeeze(1)
        if len(idx):
            out = out.index_copy(0, idx, ex(x[idx]) * w[idx, i : i + 1])
    l = nn.functional.cross_entropy(out, y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(experts.state_dict())

import torch, torch.nn as nn

cell = nn.GRUCell(5, 12).to(device)
out = nn.Linear(12, 1).to(device)
opt = torch.optim.SGD([*cell.parameters(), *out.parameters()], 0.05)
state = torch.zeros(4, 12, device=device)
data = [(torch.randn(4, (5, 8)[i % 2], 5), torch.randn(4, 1)) for i in range(N)]


def step(x, y):
    h = state.clone()
    for t in range(x.shape[1]):
        h = cell(x[:, t], h)
    l = nn.functional.mse_loss(out(h), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    state.copy_(h.detach())
    return l.detach(), h.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(state)
keep(cell.state_dict())

import torch, torch.nn as nn

model = nn.Linear(16, 4).to(device)
opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
accum = 4
it = 0
data = [(torch.randn(8, 16), torch.randint(4, (8,))) for i in range(N)]


def step(x, y):
    global it
    loss = nn.functional.cross_entropy(model(x), y) / accum
    loss.backward()
    it += 1
    if it % accum == 0:
        opt.step()
        opt.zero_grad()
    return loss.detach()


run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(model.state_dict())
keep(it)

import torch, torch.nn as nn

model = nn.Linear(6, 1).to(device)
opt = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4, line_search_fn="strong_wolfe")
data = [(torch.randn(32, 6), torch.randn(32, 1)) for _ in range(20)]


def step(x, y):
    def closure():
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    return opt.step(closure).detach()


run = pipeline(step)
run_epochs(run, data, epochs=2)
run.sync()
keep(model.state_dict())

import torch

W = torch.randn(6, 3, device=device, requires_grad=True)


def step(x, y):
    global W
    l = torch.nn.functional.cross_entropy(x @ W, y)
    (g,) = torch.autograd.grad(l, W)
    W = (W - 0.1 * g).detach().requires_grad_()
    return l.detach()


data = [(torch.randn(8, 6), torch.randint(3, (8,))) for _ in range(N)]
run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(W)

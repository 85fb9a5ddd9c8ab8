import torch
from torch.func import grad, vmap, functional_call

net = torch.nn.Linear(6, 1).to(device)
params = {k: v.detach().clone() for k, v in net.named_parameters()}


def loss_fn(p, x, y):
    return (functional_call(net, p, (x[None],)).squeeze() - y).square()


def step(x, y):
    g = vmap(grad(loss_fn), in_dims=(None, 0, 0))(params, x, y)
    for k in params:
        per = g[k].flatten(1)
        clipped = g[k] * (1 / per.norm(dim=1).clamp(min=1)).view(-1, *[1] * (g[k].dim() - 1))
        params[k].sub_(0.05 * clipped.mean(0))
    return vmap(loss_fn, in_dims=(None, 0, 0))(params, x, y).mean()


data = [(torch.randn(8, 6), torch.randn(8)) for _ in range(N)]
run = pipeline(step)
run_epochs(run, data, epochs=3)
run.sync()
keep(params)

import torch, torch.nn as nn

heads = nn.ModuleDict(
    {"a": nn.Linear(10, 2), "b": nn.Linear(10, 2), "c": nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 2))}
).to(device)
opt = torch.optim.SGD(heads.parameters(), 0.1)
data = [{"x": torch.randn(8, 10), "y": torch.randint(2, (8,)), "task": "abc"[i % 3]} for i in range(N)]


def step(batch):
    l = nn.functional.cross_entropy(heads[batch["task"]](batch["x"]), batch["y"])
    opt.zero_grad()
    l.backward()
    opt.step()
    return {"loss": l.detach(), "task": batch["task"]}


run = pipeline(step)
run_epochs(run, data, epochs=4)
run.sync()
keep(heads.state_dict())

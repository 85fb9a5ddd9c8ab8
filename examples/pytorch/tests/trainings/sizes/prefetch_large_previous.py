# cuda only
# batches: 40
# schedules: prefetch serial
import torch

W = torch.eye(1024, device=device)
prev = None
data = [torch.randn(1024, 1024).pin_memory() for _ in range(N)]


def step(x):
    global prev
    y = x
    for _ in range(6):
        y = y @ W
    d = y - (prev if prev is not None else 0 * y)
    prev = x
    return d.sum(1)


run = pipeline(step)
run_epochs(run, data, epochs=4)

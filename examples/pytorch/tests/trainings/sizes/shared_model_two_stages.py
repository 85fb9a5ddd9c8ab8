# batches: 30
import torch, torch.nn as nn, sluice

B = 2048 if device == "cuda" else 8
student, teacher = [nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64)).to(device) for _ in range(2)]
teacher.requires_grad_(False)
opt = torch.optim.SGD(student.parameters(), 0.05)
data = [torch.randn(B, 256) for _ in range(N)]


@torch.no_grad()
def targets(x):
    return x, teacher(x + 0.1 * torch.randn_like(x))


def learn(x, t):
    l = nn.functional.mse_loss(student(x), t)
    opt.zero_grad()
    l.backward()
    opt.step()
    with torch.no_grad():
        torch._foreach_lerp_(list(teacher.parameters()), list(student.parameters()), 0.01)
    return l.detach()


run = pipeline(sluice.stage(targets, shares=teacher), sluice.stage(learn, shares=teacher))
run_epochs(run, data, epochs=4)
run.sync()
keep(teacher.state_dict())

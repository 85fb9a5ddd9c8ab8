import torch, torch.nn as nn


class Mix(nn.Module):
    def __init__(s):
        super().__init__()
        s.alpha = 0.2
        s.fc = nn.Linear(10, 2)

    def forward(s, x, y):
        return s.fc(x * s.alpha), y


class Step:
    def __init__(s, model):
        s.model, s.opt, s.grad_clip = model, torch.optim.SGD(model.parameters(), 0.1), 1.0

    def __call__(s, x, y):
        o, y = s.model(x, y)
        l = nn.functional.cross_entropy(o, y)
        s.opt.zero_grad()
        l.backward()
        torch.nn.utils.clip_grad_value_(s.model.parameters(), s.grad_clip)
        s.opt.step()
        return l.detach()


step = Step(Mix().to(device))
data = [(torch.randn(8, 10), torch.randint(2, (8,))) for i in range(N)]
run = pipeline(step)
for e in range(5):
    step.model.alpha = 0.2 + 0.1 * e
    step.grad_clip = 0.5 / (e + 1)
    if e == 3:
        step.opt = torch.optim.SGD(step.model.parameters(), 0.01, momentum=0.9)
    for l in run(data):
        keep(l)
    run.sync()
keep(step.model.state_dict())

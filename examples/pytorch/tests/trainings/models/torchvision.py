import torch, torch.nn as nn
import torchvision

# batches: 24
torch.backends.cudnn.deterministic = True
model = torchvision.models.resnet18(num_classes=5).to(device)
opt = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
data = [(torch.randn(4, 3, (32, 40)[i % 5 == 4], 32), torch.randint(5, (4,))) for i in range(N)]


def step(x, y):
    l = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
    return l.detach()


run = pipeline(step)
run_epochs(run, data, epochs=2)
run.sync()
keep(model.state_dict())

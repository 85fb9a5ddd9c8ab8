#!/usr/bin/env python3
"""Writes what PyTorch makes of a narrow ResNet-18: tests/data/resnet18_reference.safetensors.

The module's names and structure are torchvision's, with fewer channels; at full width its state_dict fits torchvision's
(`--check-torchvision` says so). Everything is computed in float64 on the CPU. The file holds weights, images and labels,
the loss and the gradients of the first step, weights and running statistics after three steps of SGD with momentum, and
the logits of inference after them.

    python3 bench/pytorch/resnet18_reference.py tests/data/resnet18_reference.safetensors
"""

from __future__ import annotations  # some name what may be missing

import argparse
import json
import struct

try:
    import torch
    from torch import nn
    missing = None
except ImportError as error:  # `--help` works all the same
    missing = error

BASE_CHANNELS = 2
CLASSES = 10
IMAGES = (6, 3, 40, 48)
STEPS = 3
RATE = 0.05
MOMENTUM = 0.9


def block_type() -> type:
    class Block(nn.Module):
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.relu = nn.ReLU()
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            if stride != 1 or inputs != outputs:
                self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            else:
                self.downsample = nn.Identity()

        def forward(self, x):
            y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            return self.relu(y + self.downsample(x))

    return Block


def resnet18(base: int, classes: int):
    block = block_type()

    class ResNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(3, base, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(base)
            self.relu = nn.ReLU()
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            inputs = base
            for stage in range(4):
                outputs = base << stage
                blocks = [block(inputs, outputs, 1 if stage == 0 else 2), block(outputs, outputs, 1)]
                setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
                inputs = outputs
            self.avgpool = nn.AdaptiveAvgPool2d(1)
            self.fc = nn.Linear(inputs, classes)

        def forward(self, x):
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(self.avgpool(x).flatten(1))

    return ResNet()


def write_safetensors(path: str, tensors: dict) -> None:
    """The float64 tensors as float32, the others as they are."""
    header, parts, offset = {}, [], 0
    for name, tensor in sorted(tensors.items()):
        tensor = tensor.detach().contiguous()
        kind = "I32" if tensor.dtype == torch.int32 else "F32"
        tensor = tensor if kind == "I32" else tensor.float()
        data = tensor.numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def state(prefix: str, model) -> dict:
    return {prefix + k: v.clone() for k, v in model.state_dict().items() if "num_batches" not in k}


def reference() -> dict:
    torch.manual_seed(18)
    model = resnet18(BASE_CHANNELS, CLASSES)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if isinstance(module, nn.BatchNorm2d):  # not 1 and 0, so that leaving one out shows
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
    # Rounded to float32 first, so that the file holds exactly what is computed with.
    model = model.float().double()
    images = torch.randn(IMAGES).double()
    labels = torch.randint(0, CLASSES, (IMAGES[0],))
    result = state("before.", model) | {"images": images, "labels": labels.int()}
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            result |= {"gradient." + name: p.grad.clone() for name, p in model.named_parameters()}
        optimizer.step()
    model.eval()
    result |= state("after.", model)
    return result | {"losses": torch.tensor(losses).double(), "logits": model(images)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="the safetensors file to write")
    parser.add_argument("--check-torchvision", action="store_true", help="compare names and shapes with torchvision's")
    options = parser.parse_args()
    if missing is not None:
        parser.exit(1, f"resnet18_reference.py needs PyTorch: {missing}\n")
    if options.check_torchvision:
        import torchvision
        torchvision.models.resnet18().load_state_dict(resnet18(64, 1000).state_dict())
    write_safetensors(options.file, reference())


if __name__ == "__main__":
    main()

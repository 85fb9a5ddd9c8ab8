#!/usr/bin/env python3
"""The frozen-encoder experiment in PyTorch, to run beside examples/frozen_encoder on the same GPU.

Prints steps per second of two arrangements, at the published sizes: `serial` (copy, encode, train, one after
another) and `two-streams` (the encoder on batch N+1 while the decoder trains on batch N). The published two-stream
loop has three data races; here each stream waits for what it reads, and the features' memory is marked as used by
the stream that reads it.

    python3 bench/pytorch/frozen_encoder.py --batch 8 --steps 100
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn

CHANNELS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
CLASSES = 10


def make_encoder() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, CHANNELS[0], 1), nn.ReLU()]
    for index, (narrow, wide) in enumerate(zip(CHANNELS, CHANNELS[1:])):
        layers.append(nn.Conv2d(narrow, wide, 2, stride=2))
        if index + 2 < len(CHANNELS):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def make_decoder() -> nn.Module:
    layers: list[nn.Module] = []
    for wide, narrow in zip(reversed(CHANNELS), list(reversed(CHANNELS))[1:]):
        layers += [nn.ConvTranspose2d(wide, narrow, 2, stride=2), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(CHANNELS[0], CLASSES, 3, padding=1))


class Experiment:
    def __init__(self, batch: int) -> None:
        torch.manual_seed(1)
        self.encoder = make_encoder().cuda().requires_grad_(False)
        self.decoder = make_decoder().cuda()
        self.optimizer = torch.optim.SGD(self.decoder.parameters(), lr=1e-3)
        self.loss = nn.CrossEntropyLoss()
        self.images = [torch.randint(0, 256, (batch, 3, 256, 256), dtype=torch.uint8).pin_memory() for _ in range(4)]
        self.labels = [torch.randint(0, CLASSES, (batch, 256, 256)).pin_memory() for _ in range(4)]

    def copy(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        images = self.images[step % 4].to("cuda", non_blocking=True).float()
        return images, self.labels[step % 4].to("cuda", non_blocking=True)

    def train(self, features: torch.Tensor, labels: torch.Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.decoder(features), labels).backward()
        self.optimizer.step()

    def serial(self, steps: int) -> None:
        for step in range(steps):
            images, labels = self.copy(step)
            with torch.no_grad():
                features = self.encoder(images)
            self.train(features, labels)

    def two_streams(self, steps: int) -> None:
        encode, train = torch.cuda.Stream(), torch.cuda.Stream()
        encode.wait_stream(torch.cuda.current_stream())
        train.wait_stream(torch.cuda.current_stream())

        def produce(step: int):
            with torch.cuda.stream(encode), torch.no_grad():
                images, labels = self.copy(step)
                return self.encoder(images), labels, encode.record_event()

        ready = produce(0)
        for step in range(steps):
            features, labels, encoded = ready
            with torch.cuda.stream(train):
                train.wait_event(encoded)
                features.record_stream(train)
                labels.record_stream(train)
                self.train(features, labels)
            if step + 1 < steps:
                ready = produce(step + 1)
        torch.cuda.current_stream().wait_stream(train)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json")
    arguments = parser.parse_args()

    torch.backends.cudnn.benchmark = True
    experiment = Experiment(arguments.batch)
    arrangements = {"serial": experiment.serial, "two-streams": experiment.two_streams}
    rates: dict[str, list[float]] = {name: [] for name in arrangements}
    for repeat in range(arguments.repeats):
        for name, run in arrangements.items():
            run(arguments.warmup)
            torch.cuda.synchronize()
            start = time.perf_counter()
            run(arguments.steps)
            torch.cuda.synchronize()
            rates[name].append(arguments.steps / (time.perf_counter() - start))

    report = {"experiment": "frozen_encoder", "framework": f"PyTorch {torch.__version__}",
              "device": torch.cuda.get_device_name(), "batch": arguments.batch, "steps": arguments.steps, "runs": []}
    for name, values in rates.items():
        report["runs"].append({"schedule": name, "steps_per_second": statistics.median(values),
                               "least": min(values), "most": max(values)})
        print(f"{name:12} {statistics.median(values):8.1f} steps/s  ({min(values):.1f} to {max(values):.1f})")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Data-parallel training in PyTorch (DistributedDataParallel), to run beside `frozen_encoder --gpus N` on the same GPUs.

A process a GPU, over NCCL. Each experiment by itself on each GPU first, then together: steps per second of rank 0, medians of
several rounds, and the share of the first that the second keeps.

- `encoder-8`, `encoder-128`: the frozen encoder and its decoder, batches of 8 and 128 images a GPU, from pinned memory, TF32.
  With `-last` behind: channels last and the fused optimizer.
- `resnet-1024`: ResNet-18's step on 1,024 images of 224x224 that are on the device, float16 by autocast, channels last, fused
  optimizer. With `-compiled` behind: through torch.compile.

    NCCL_NVLS_ENABLE=0 python3 bench/pytorch/ddp.py --gpus 2
    NCCL_NVLS_ENABLE=0 python3 bench/pytorch/ddp.py --gpus 2 --only encoder-8,encoder-8-last --bucket-mb 25,200
"""

from __future__ import annotations  # some name what may be missing

import argparse
import json
import os
import socket
import statistics
import sys
import time

try:
    import torch
    import torch.distributed
    import torch.multiprocessing
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    missing = None
except ImportError as error:  # `--help` works all the same
    missing = error

from captured import require
from frozen_encoder import CHANNELS, CLASSES, POOL, make_decoder, make_encoder
from resnet18_reference import resnet18

EXPERIMENTS = ["encoder-8", "encoder-8-last", "encoder-128", "encoder-128-last", "resnet-1024", "resnet-1024-compiled"]


class Encoder:
    """The frozen encoder and its trained decoder."""

    def __init__(self, name: str, wrap) -> None:
        parts = name.split("-")
        self.batch = int(parts[1])
        last = "last" in parts
        self.layout = torch.channels_last if last else torch.contiguous_format
        with torch.device("cuda"):
            encoder, decoder = make_encoder(CHANNELS), make_decoder(CHANNELS, CLASSES)
        self.encoder = encoder.requires_grad_(False).to(memory_format=self.layout)
        self.decoder = wrap(decoder.to(memory_format=self.layout))
        self.optimizer = torch.optim.SGD(self.decoder.parameters(), lr=1e-3, fused=last)
        self.images = [torch.randint(0, 256, (self.batch, 3, 256, 256), dtype=torch.uint8).pin_memory()
                       for _ in range(POOL)]
        self.labels = [torch.randint(0, CLASSES, (self.batch, 256, 256), dtype=torch.uint8).pin_memory()
                       for _ in range(POOL)]

    def step(self, index: int) -> None:
        images = self.images[index % POOL].to("cuda", non_blocking=True).float()
        labels = self.labels[index % POOL].to("cuda", non_blocking=True).long()
        with torch.no_grad():
            features = self.encoder(images.contiguous(memory_format=self.layout))
        self.optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(self.decoder(features), labels).backward()
        self.optimizer.step()


class ResNet:
    """ResNet-18's step on a batch that is on the device."""

    def __init__(self, name: str, wrap) -> None:
        parts = name.split("-")
        self.batch = int(parts[1])
        with torch.device("cuda"):
            model = resnet18(64, 1000)
            self.images = torch.randn(self.batch, 3, 224, 224).contiguous(memory_format=torch.channels_last)
            self.labels = torch.randint(0, 1000, (self.batch,))
        self.model = wrap(model.to(memory_format=torch.channels_last))
        if "compiled" in parts:
            self.model = torch.compile(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9, fused=True)

    def step(self, _: int) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.float16):
            loss = nn.functional.cross_entropy(self.model(self.images), self.labels)
        loss.backward()
        self.optimizer.step()


def rate(experiment, steps: int, rounds: int) -> float:
    """Steps per second, the median of several rounds."""
    rates = []
    for index in range(max(10, steps // 5)):
        experiment.step(index)
    for _ in range(rounds):
        torch.cuda.synchronize()
        torch.distributed.barrier()
        began = time.perf_counter()
        for index in range(steps):
            experiment.step(index)
        torch.cuda.synchronize()
        rates.append(steps / (time.perf_counter() - began))
    return statistics.median(rates)


def measure(rank: int, ranks: int, port: int, arguments: argparse.Namespace) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=ranks)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    results = []
    for name in arguments.only:
        kind = Encoder if name.startswith("encoder") else ResNet
        torch.manual_seed(1)
        alone = kind(name, lambda module: module)
        one = rate(alone, arguments.steps, arguments.rounds)
        del alone
        torch.cuda.empty_cache()
        for megabytes in arguments.bucket_mb:
            torch.manual_seed(1)
            together = kind(name, lambda module: DistributedDataParallel(
                module, device_ids=[rank], bucket_cap_mb=megabytes, gradient_as_bucket_view=True, static_graph=True))
            several = rate(together, arguments.steps, arguments.rounds)
            if rank == 0:
                print(f"{name:22} bucket {megabytes:4} MB  one GPU {one:9.1f}  of {ranks} each {several:9.1f} steps/s  "
                      f"{several / one:5.3f}  {several * together.batch:9.0f} samples/s a GPU", flush=True)
            results.append({"experiment": name, "bucket_mb": megabytes, "one": one, "each_of_several": several,
                            "samples_per_second": several * together.batch, "gpus": ranks})
            del together
            torch.cuda.empty_cache()
    if rank == 0 and arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)
    torch.distributed.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=2, help="processes, each with a GPU of its own")
    parser.add_argument("--only", default="encoder-8,encoder-128,resnet-1024", help="experiments, with commas between them")
    parser.add_argument("--bucket-mb", default="25", help="DDP's bucket sizes, with commas between them")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="where to write the results")
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",")
    arguments.bucket_mb = [int(text) for text in arguments.bucket_mb.split(",")]
    for name in arguments.only:
        if name not in EXPERIMENTS:
            sys.exit(f"{sys.argv[0]}: --only: expected some of {', '.join(EXPERIMENTS)}, not {name}")
    require(missing)
    if torch.cuda.device_count() < arguments.gpus:
        sys.exit(f"{sys.argv[0]}: --gpus: expected at most {torch.cuda.device_count()} devices, not {arguments.gpus}")
    with socket.socket() as probe:  # a port that is free
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torch.multiprocessing.spawn(measure, args=(arguments.gpus, port, arguments), nprocs=arguments.gpus)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The frozen-encoder experiment in PyTorch, to run beside examples/frozen_encoder on the same GPU.

Steps per second and peak memory of each arrangement, at the published sizes, from pinned memory on, with TF32 products and
cuDNN choosing among its algorithms by measuring:

- `serial`: copy, encode, train, one after another. `streams`: the encoder on batch N+1 while the decoder trains on batch N.
  The published loop of two streams has three data races; here each stream waits for what it reads, and memory is marked
  as used by the stream that reads it.
- `serial-last`, `streams-last`: the same with channels last and the fused optimizer.
- `graph`: the whole step as one CUDA graph, channels last. `forked-graph`: the same with the next batch's encoding on a
  branch of its own, and features in two parities. Four graphs each, one for each pinned batch, which they copy from.
- `compiled-graph`, `compiled-forked-graph`: both halves through torch.compile before. They take a minute to compile.
- `bfloat16-…` before any of these names: under autocast to bfloat16. Apart, since all else multiplies in TF32.

    python3 bench/pytorch/frozen_encoder.py --batch 8 --steps 100
    python3 bench/pytorch/frozen_encoder.py --only graph,bfloat16-graph --json rates.json
    frozen_encoder --batch 8 --steps 200 --warmup 0 --losses --save-start start.st --json ours.json
    python3 bench/pytorch/frozen_encoder.py --start start.st --steps 200 --losses theirs.json    losses of each step
    python3 bench/pytorch/frozen_encoder.py --published 9    the published loop, races and all: how each process ended

`--serve` is for bench/frozen_encoder.py: one JSON object of options a line in, one with results out.
"""

from __future__ import annotations  # some name what may be missing

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time

try:
    import torch
    from torch import nn
    missing = None
except ImportError as error:  # `--help` works all the same
    missing = error

from captured import require

CHANNELS = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
CLASSES = 10
POOL = 4  # batches that come round again
STANDARD = ["serial", "streams", "serial-last", "streams-last", "graph", "forked-graph"]
COMPILED = ["compiled-graph", "compiled-forked-graph"]


def make_encoder(channels: list[int]) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, channels[0], 1), nn.ReLU()]
    for index, (narrow, wide) in enumerate(zip(channels, channels[1:])):
        layers.append(nn.Conv2d(narrow, wide, 2, stride=2))
        if index + 2 < len(channels):
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def make_decoder(channels: list[int], classes: int) -> nn.Module:
    layers: list[nn.Module] = []
    for wide, narrow in zip(reversed(channels), list(reversed(channels))[1:]):
        layers += [nn.ConvTranspose2d(wide, narrow, 2, stride=2), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(channels[0], classes, 3, padding=1))


def read_safetensors(path: str) -> dict[str, torch.Tensor]:
    """The float32, int32 and uint8 tensors of a file: a length, that many bytes of JSON, and the tensors' bytes."""
    with open(path, "rb") as file:
        content = bytearray(file.read())
    begin = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8:begin]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            kind = {"F32": torch.float32, "I32": torch.int32, "U8": torch.uint8}[entry["dtype"]]
            count = (last - first) // kind.itemsize
            tensors[name] = torch.frombuffer(content, dtype=kind, count=count,
                                             offset=begin + first).reshape(entry["shape"])
    return tensors


class Experiment:
    """One arrangement of the experiment: `run(steps)` enqueues steps, `losses` are of all of them if they are kept."""

    def __init__(self, name: str, batch: int, start: dict[str, torch.Tensor], keep_losses: bool = False) -> None:
        torch.manual_seed(1)
        parts = name.split("-")
        self.cast = torch.bfloat16 if parts[0] == "bfloat16" else None
        last = "last" in parts or "graph" in parts
        layout = torch.channels_last if last else torch.contiguous_format
        channels = [len(value) for name, value in sorted(start.items(), key=lambda item: len(item[1]))
                    if name.startswith("encoder.") and name.endswith(".weight")] or CHANNELS
        classes = len(start[f"decoder.{2 * len(channels) - 2}.weight"]) if start else CLASSES
        with torch.device("cuda"):
            encoder, self.decoder = make_encoder(channels), make_decoder(channels, classes)
        for module, prefix in ((encoder, "encoder."), (self.decoder, "decoder.")):
            if start:
                module.load_state_dict({key[len(prefix):]: value for key, value in start.items()
                                        if key.startswith(prefix)})
            module.to(memory_format=layout)
        encoder.requires_grad_(False)
        self.optimizer = torch.optim.SGD(self.decoder.parameters(), lr=1e-3, fused=last)
        self.layout = layout
        self.encode = encoder
        self.loss_of = lambda features, labels: nn.functional.cross_entropy(self.decoder(features).float(), labels)
        if "compiled" in parts:
            self.encode = torch.compile(self.encode)
            self.loss_of = torch.compile(self.loss_of)
        self.scale, self.rates = 1.0, []
        if start:
            self.scale, self.rates = start["image_scale"].item(), start["rates"].tolist()
            count = sum(name.startswith("images.") for name in start)
            self.images = [start[f"images.{i}"].pin_memory() for i in range(count)]
            self.labels = [start[f"labels.{i}"].pin_memory() for i in range(count)]
        else:
            self.images = [torch.randint(0, 256, (batch, 3, 256, 256), dtype=torch.uint8).pin_memory()
                           for _ in range(POOL)]
            self.labels = [torch.randint(0, CLASSES, (batch, 256, 256), dtype=torch.uint8).pin_memory()
                           for _ in range(POOL)]
        self.step = 0
        self.losses: list[torch.Tensor] = []
        self.keep_losses = keep_losses
        self.graphs: list[torch.cuda.CUDAGraph] = []
        self.features: list[torch.Tensor] = []
        self.wanted: list[torch.Tensor] = []
        if "graph" in parts:
            self.capture("forked" in parts)
            self.run = self.replay
        else:
            self.run = self.two_streams if "streams" in parts else self.serial

    def produce(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Features and labels of a batch, from pinned memory. Labels cross the bus as bytes."""
        images = self.images[step % len(self.images)].to("cuda", non_blocking=True).float()
        labels = self.labels[step % len(self.labels)].to("cuda", non_blocking=True).long()
        if self.scale != 1:
            images = images * self.scale
        with torch.no_grad(), torch.autocast("cuda", self.cast, enabled=self.cast is not None):
            return self.encode(images.contiguous(memory_format=self.layout)), labels

    def train(self, features: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", self.cast, enabled=self.cast is not None):
            loss = self.loss_of(features, labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def keep(self, loss: torch.Tensor) -> None:
        if self.keep_losses:
            self.losses.append(loss.clone())

    def serial(self, steps: int) -> None:
        for _ in range(steps):
            if self.rates:
                self.optimizer.param_groups[0]["lr"] = self.rates[self.step % len(self.rates)]
            self.keep(self.train(*self.produce(self.step)))
            self.step += 1

    def two_streams(self, steps: int) -> None:
        encode, train = torch.cuda.Stream(), torch.cuda.Stream()
        encode.wait_stream(torch.cuda.current_stream())
        train.wait_stream(torch.cuda.current_stream())

        def produce(step: int):
            with torch.cuda.stream(encode):
                return *self.produce(step), encode.record_event()

        ready = produce(self.step)
        for left in reversed(range(steps)):
            features, labels, encoded = ready
            with torch.cuda.stream(train):
                train.wait_event(encoded)
                features.record_stream(train)
                labels.record_stream(train)
                self.keep(self.train(features, labels))
            self.step += 1
            if left > 0:
                ready = produce(self.step)
        torch.cuda.current_stream().wait_stream(train)

    def capture(self, forked: bool) -> None:
        """Graph i trains on what graph i-1 encoded if `forked`, otherwise on its own batch. Memory that outlives a graph
        is made before."""
        self.forked = forked
        before = [parameter.detach().clone() for parameter in self.decoder.parameters()]
        side, branch = torch.cuda.Stream(), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for parity in range(2):
                features, labels = self.produce(parity)
                self.features.append(features.clone())
                self.wanted.append(labels.clone())
            for _ in range(3):
                self.train(self.features[0], self.wanted[0])
        torch.cuda.synchronize()
        with torch.no_grad():
            for parameter, value in zip(self.decoder.parameters(), before):
                parameter.copy_(value)
        self.graph_losses = []
        for i in range(POOL):
            graph = torch.cuda.CUDAGraph()
            pool = self.graphs[0].pool() if self.graphs else None
            with torch.cuda.graph(graph, pool=pool, stream=side):
                if forked:
                    branch.wait_stream(side)
                    with torch.cuda.stream(branch):
                        features, labels = self.produce(i + 1)
                        self.features[(i + 1) % 2].copy_(features)
                        self.wanted[(i + 1) % 2].copy_(labels)
                    loss = self.train(self.features[i % 2], self.wanted[i % 2])
                    side.wait_stream(branch)
                else:
                    loss = self.train(*self.produce(i))
            self.graphs.append(graph)
            self.graph_losses.append(loss)
        if forked:
            features, labels = self.produce(0)
            self.features[0].copy_(features)
            self.wanted[0].copy_(labels)

    def replay(self, steps: int) -> None:
        for _ in range(steps):
            self.graphs[self.step % POOL].replay()
            self.keep(self.graph_losses[self.step % POOL])
            self.step += 1


def device_taken() -> int:
    free, total = torch.cuda.mem_get_info()
    return total - free


def measure(options: dict) -> dict:
    """Steps per second of one arrangement, several times, and the memory that it took."""
    gc.collect()  # what was measured before
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    allocated, taken = torch.cuda.memory_allocated(), device_taken()
    start = read_safetensors(options["start"]) if options.get("start") else {}
    experiment = Experiment(options["arrangement"], options["batch"], start, options.get("losses", False))
    rates = []
    for _ in range(options.get("repeats", 1)):
        experiment.run(options["warmup"])
        torch.cuda.synchronize()
        began = time.perf_counter()
        experiment.run(options["steps"])
        torch.cuda.synchronize()
        rates.append(options["steps"] / (time.perf_counter() - began))
    result = {"arrangement": options["arrangement"], "batch": options["batch"], "steps_per_second": rates,
              "allocated_bytes": torch.cuda.max_memory_allocated() - allocated,
              "device_bytes": device_taken() - taken}
    if options.get("losses"):
        result["losses"] = torch.stack(experiment.losses).tolist()
    return result


def published_loop(batch: int, steps: int) -> list[float]:
    """The published loop's order of things: copies on the default stream, for which neither stream waits, and features
    marked as used by the stream that made them."""
    torch.manual_seed(1)
    encoder, decoder = make_encoder(CHANNELS).cuda(), make_decoder(CHANNELS, CLASSES).cuda()
    optimizer = torch.optim.SGD(decoder.parameters(), lr=1e-3)
    encode, train = torch.cuda.Stream(), torch.cuda.Stream()
    batches = [(torch.randint(0, 256, (batch, 3, 256, 256), dtype=torch.uint8).pin_memory(),
                torch.randint(0, CLASSES, (batch, 256, 256)).pin_memory()) for _ in range(POOL)]
    losses = []
    handed = None
    for step in range(steps + 1):
        images = batches[step % POOL][0].to("cuda", non_blocking=True).float()
        labels = batches[step % POOL][1].to("cuda", non_blocking=True)
        with torch.cuda.stream(encode), torch.no_grad():
            features = encoder(images)
            features.record_stream(encode)
        if handed is not None:
            with torch.cuda.stream(train):
                optimizer.zero_grad(set_to_none=True)
                loss = nn.functional.cross_entropy(decoder(handed[0]), handed[1])
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        train.wait_stream(encode)
        handed = features, labels
    torch.cuda.synchronize()
    return torch.stack(losses).tolist()


def published(runs: int, batch: int, steps: int) -> list[dict]:
    """The published loop, each time in a process of its own, and how it ended."""
    results = []
    for _ in range(runs):
        command = [sys.executable, __file__, "--published-once", "--batch", str(batch), "--steps", str(steps)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode == 0:
            losses = json.loads(process.stdout)
            end = {"end": "ran through", "loss_first": losses[0], "loss_last": losses[-1],
                   "not_finite": sum(1 for loss in losses if loss != loss or abs(loss) == float("inf"))}
        else:
            end = {"end": "died", "reason": next((line for line in process.stderr.splitlines() if "rror" in line), "")}
        results.append(end)
        print(f"published loop: {end}", flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", help="arrangements, with commas between (default: all that need no compiling)")
    parser.add_argument("--start", help="first weights and batches, by frozen_encoder --save-start")
    parser.add_argument("--losses", help="write the losses of all steps of `serial` to this file, and end")
    parser.add_argument("--published", type=int, metavar="RUNS", help="run the published loop so often, and end")
    parser.add_argument("--published-once", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    require(missing)

    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    report = {"experiment": "frozen_encoder", "framework": f"PyTorch {torch.__version__}",
              "device": torch.cuda.get_device_name(), "batch": arguments.batch, "steps": arguments.steps}
    if arguments.serve:
        print(json.dumps(report), flush=True)
        for line in sys.stdin:
            print(json.dumps(measure(json.loads(line))), flush=True)
        return
    if arguments.published_once:
        print(json.dumps(published_loop(arguments.batch, arguments.steps)))
        return

    options = {"batch": arguments.batch, "steps": arguments.steps, "warmup": arguments.warmup,
               "repeats": arguments.repeats, "start": arguments.start}
    if arguments.losses:
        result = measure(options | {"arrangement": "serial", "warmup": 0, "repeats": 1, "losses": True})
        with open(arguments.losses, "w", encoding="utf-8") as file:
            json.dump(report | {"losses": result["losses"]}, file, indent=2)
        return
    if arguments.published:
        report["published"] = published(arguments.published, arguments.batch, arguments.steps)
    else:
        names = arguments.only.split(",") if arguments.only else STANDARD
        report["runs"] = [measure(options | {"arrangement": name}) for name in names]
        for run in report["runs"]:
            rates = run["steps_per_second"]
            print(f"{run['arrangement']:24} {statistics.median(rates):8.1f} steps/s  ({min(rates):.1f} to "
                  f"{max(rates):.1f})  peak {run['allocated_bytes'] / 1e6:.0f} MB in tensors, "
                  f"{run['device_bytes'] / 1e6:.0f} MB of the device")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)


if __name__ == "__main__":
    main()

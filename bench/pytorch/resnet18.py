#!/usr/bin/env python3
"""The input ladder for ResNet-18 in PyTorch, to run beside examples/resnet18 on the same GPU.

Each rung as published, on top of the last, with TF32 products and cuDNN choosing among its algorithms by measuring:

- `0`: the training's process loads: PIL enlarges to 224x224, to float32, normalised. `1`: worker processes. `2`: pinned
  memory, asynchronous copies. `3`: 512 images a batch. `4`: bytes are copied, and normalised on the device. `5`: gradients
  dropped instead of zeroed. `6`: float16 by autocast, without loss scaling, 1,024 images. `7`: the model compiled.
- `8`: bytes of 32x32 are copied, and enlarged on the device, by `interpolate`.
- `best`: that, channels last, compiled, with the fused optimizer, the whole step as one CUDA graph for each size of batch.

    python3 bench/pytorch/resnet18.py --only 0,1,2 --workers 8
    python3 bench/pytorch/resnet18.py --only 7,best --alone          on one batch that is on the device already
    python3 bench/pytorch/resnet18.py --inference                    batches of 1 and 16, eagerly and as graphs
    resnet18 --data tiles --rung 5 --batch 32 --steps 100 --warmup 0 --losses --save-start start.st --json ours.json
    python3 bench/pytorch/resnet18.py --start start.st --only 5 --losses theirs.json

With `--start` weights, images, their order and the learning rates are those of the program, whose batches are used as they
are. `--device cpu` is for comparing losses without a GPU. `--serve` is for bench/resnet18.py: one JSON object of options a
line in, one with results out.
"""

from __future__ import annotations  # some name what may be missing

import argparse
import gc
import itertools
import json
import statistics
import sys
import time

try:
    import numpy
    import torch
    from PIL import Image
    from torch import nn
    missing = None
except ImportError as error:  # `--help` works all the same
    missing = error

from captured import captured, require
from frozen_encoder import device_taken, read_safetensors
from resnet18_reference import resnet18

SIDE = 224
IMAGES = 10_000
RUNGS = [str(rung) for rung in range(9)]
INFERENCE = ["eager", "graph", "graph-last", "compiled-graph"]


def batch_of(name: str) -> int:
    return 1024 if name == "best" or int(name) >= 6 else 512 if int(name) >= 3 else 32


class ImageSet:
    """Images as the loader gives them: floats, bytes, or bytes of 32x32."""

    def __init__(self, images, labels, pixels: str, side: int) -> None:
        self.images, self.labels, self.pixels, self.side = images, labels, pixels, side

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int):
        image = self.images[index]
        if self.pixels != "small bytes":
            image = numpy.asarray(Image.fromarray(image).resize((self.side, self.side), Image.BILINEAR))
        tensor = torch.from_numpy(numpy.ascontiguousarray(image.transpose(2, 0, 1)))
        if self.pixels == "floats":
            tensor = tensor.float().div(255).sub(0.5).div(0.5)
        return tensor, self.labels[index]


def batches_of(start: dict, count: int, batch: int, steps: int) -> list[list[int]]:
    """Which images each step trains on: the program's, or shuffled anew in each epoch, the last batch shorter."""
    if start:
        ends = list(itertools.accumulate(start["sizes"].tolist()))
        order = start["order"].tolist()
        return [order[end - size:end] for end, size in zip(ends, start["sizes"].tolist())]
    batches: list[list[int]] = []
    while len(batches) < steps:
        order = numpy.random.permutation(count).tolist()
        batches += [order[i:i + batch] for i in range(0, count, batch)]
    return batches[:steps]


class Ladder:
    """One rung: `run(steps)` trains on the next batches."""

    def __init__(self, options: dict) -> None:
        name = options["rung"]
        self.rung = 8 if name == "best" else int(name)
        self.is_best = name == "best"
        self.device = torch.device(options.get("device", "cuda"))
        self.is_pinned = self.rung >= 2 and self.device.type == "cuda"
        self.cast = torch.float16 if self.rung >= 6 and self.device.type == "cuda" else None
        torch.manual_seed(1)
        numpy.random.seed(1)
        start = read_safetensors(options["start"]) if options.get("start") else {}
        base, classes = (len(start["conv1.weight"]), len(start["fc.bias"])) if start else (64, 1000)
        self.side = options.get("side", SIDE)
        self.batch = options.get("batch") or batch_of(name)
        self.rates = start["rates"].tolist() if start else []
        if self.is_best and len(set(self.rates)) > 1:
            sys.exit(f"{options['start']}: expected one learning rate for all steps, which the graph keeps")
        if start:
            images, labels = start["images"].numpy(), start["labels"].long().tolist()
        else:
            images = numpy.random.randint(0, 256, (IMAGES, 32, 32, 3), dtype=numpy.uint8)
            labels = numpy.random.randint(0, 10, IMAGES).tolist()

        # Channels last are other algorithms of cuDNN in the same precision.
        is_last = self.is_best or options.get("channels_last", False)
        self.layout = torch.channels_last if is_last else torch.contiguous_format
        model = resnet18(base, classes)
        if start:
            model.load_state_dict({key: start[key] if key in start else value
                                   for key, value in model.state_dict().items()})
        else:
            for module in model.modules():
                if isinstance(module, nn.Conv2d):
                    nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        self.model = model.to(self.device, memory_format=self.layout)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9,
                                         fused=True if self.is_best else None)
        self.loss_of = self.forward
        if self.rung >= 7 and self.device.type == "cuda":
            self.loss_of = torch.compile(self.forward, dynamic=False)
        self.graphs: dict[int, tuple] = {}
        self.losses: list = []
        self.keep_losses = options.get("losses", False)
        self.checkpoints = options.get("checkpoints")  # of the program: whose, and every how many steps they are taken
        self.every = options.get("every", 0)
        self.step = 0
        pixels = "floats" if self.rung < 4 else "bytes" if self.rung < 8 else "small bytes"
        workers = 0 if self.rung == 0 else options.get("workers", 8)
        steps = options["warmup"] + options["steps"] * options.get("repeats", 1)
        batches = batches_of(start, len(images), self.batch, steps)
        loader = torch.utils.data.DataLoader(ImageSet(images, labels, pixels, self.side), batch_sampler=batches,
                                             num_workers=workers, pin_memory=self.is_pinned)
        self.batches = iter(loader)
        self.first: tuple = ()
        if options.get("alone"):
            self.first = next(self.batches)
            self.stay()

    def stay(self) -> None:
        """From here on each batch is the first, and on the device already."""
        images, labels = self.first
        self.batches = itertools.repeat((images.to(self.device), labels.to(self.device)))

    def forward(self, images, labels):
        if self.rung >= 4:
            images = images.float().div(255)
            if self.rung >= 8:
                images = nn.functional.interpolate(images, (self.side, self.side), mode="bilinear")
            images = images.sub(0.5).div(0.5)
        images = images.contiguous(memory_format=self.layout)
        with torch.autocast(self.device.type, self.cast, enabled=self.cast is not None):
            return nn.functional.cross_entropy(self.model(images), labels)

    def train(self, images, labels):
        self.optimizer.zero_grad(set_to_none=self.rung >= 5)
        loss = self.loss_of(images, labels)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def graph_of(self, images, labels) -> tuple:
        """The step as a graph, with what it reads and its loss; what warming it up changed is put back."""
        state = {key: value.clone() for key, value in self.model.state_dict().items()}
        held = images.clone(), labels.clone()
        losses: list = []

        def work() -> None:
            losses[:] = [self.train(*held)]

        if self.optimizer.state:
            before = [entry["momentum_buffer"].clone() for entry in self.optimizer.state.values()]
        else:
            self.train(*held)
            before = [torch.zeros_like(entry["momentum_buffer"]) for entry in self.optimizer.state.values()]
        replay = captured(work)
        self.model.load_state_dict(state)
        for entry, value in zip(self.optimizer.state.values(), before):
            entry["momentum_buffer"].copy_(value)
        return replay, held, losses[0]

    def take(self, path: str) -> None:
        """Goes on from a checkpoint of the program's: weights, running statistics and velocities."""
        held = read_safetensors(path)
        self.model.load_state_dict({key: held.get(f"model.{key}", value) for key, value in self.model.state_dict().items()})
        for key, parameter in self.model.named_parameters():
            self.optimizer.state[parameter]["momentum_buffer"].copy_(held[f"momentum.{key}"])

    def run(self, steps: int) -> int:
        """Returns the number of images that were trained on."""
        samples = 0
        for _ in range(steps):
            images, labels = next(self.batches)
            self.first = self.first or (images, labels)
            samples += len(images)
            if self.checkpoints and self.step > 0 and self.step % self.every == 0:
                self.take(self.checkpoints.replace("{step}", str(self.step)))
            if self.rates:
                self.optimizer.param_groups[0]["lr"] = self.rates[self.step]
            images = images.to(self.device, non_blocking=self.is_pinned)
            labels = labels.to(self.device, non_blocking=self.is_pinned)
            if self.is_best:
                if len(images) not in self.graphs:
                    self.graphs[len(images)] = self.graph_of(images, labels)
                replay, held, loss = self.graphs[len(images)]
                held[0].copy_(images)
                held[1].copy_(labels)
                replay()
            else:
                loss = self.train(images, labels)
            if self.keep_losses:
                self.losses.append(loss.clone())
            self.step += 1
        return samples


def free_memory() -> None:
    gc.collect()  # what was measured before
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measure(options: dict) -> dict:
    """Samples per second of one rung, several times, and the memory that it took."""
    free_memory()
    is_cuda = options.get("device", "cuda") == "cuda"
    allocated, taken = (torch.cuda.memory_allocated(), device_taken()) if is_cuda else (0, 0)
    ladder = Ladder(options)

    def rate() -> float:
        wait()
        began = time.perf_counter()
        samples = ladder.run(options["steps"])
        wait()
        return samples / (time.perf_counter() - began)

    ladder.run(options["warmup"])
    rates = [rate() for _ in range(options.get("repeats", 1))]
    result = {"rung": options["rung"], "batch": ladder.batch, "alone": bool(options.get("alone")),
              "samples_per_second": rates}
    if is_cuda:
        result |= {"allocated_bytes": torch.cuda.max_memory_allocated() - allocated,
                   "device_bytes": device_taken() - taken}
    if options.get("losses"):
        result["losses"] = torch.stack(ladder.losses).tolist()
    if options.get("then_alone"):  # without making, and compiling, the rung once more
        ladder.stay()
        ladder.run(options["warmup"])
        result["alone_samples_per_second"] = rate()
    return result


def measure_inference(options: dict) -> dict:
    """Microseconds of one batch, in evaluation mode."""
    free_memory()
    name, batch = options["arrangement"], options["batch"]
    torch.manual_seed(1)
    layout = torch.channels_last if name in ("graph-last", "compiled-graph") else torch.contiguous_format
    model = resnet18(64, 1000).cuda().to(memory_format=layout).eval()
    images = torch.randn(batch, 3, SIDE, SIDE, device="cuda").contiguous(memory_format=layout)
    call = torch.compile(model, dynamic=False) if name == "compiled-graph" else model
    with torch.no_grad():
        work = (lambda: call(images)) if name == "eager" else captured(lambda: call(images))
        times = []
        for _ in range(options.get("repeats", 1) + 1):  # the first one warms up
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(options["steps"]):
                work()
            torch.cuda.synchronize()
            times.append(1e6 * (time.perf_counter() - began) / options["steps"])
    return {"arrangement": name, "batch": batch, "microseconds": times[1:]}


def shown(values: list[float]) -> str:
    return f"{statistics.median(values):10,.1f}  ({min(values):,.1f} to {max(values):,.1f})"


def run_all(arguments, options: dict) -> list[dict]:
    runs = []
    if arguments.inference:
        for batch in [arguments.batch] if arguments.batch else [1, 16]:
            for name in INFERENCE:
                runs.append(measure_inference(options | {"arrangement": name, "batch": batch}))
                print(f"batch {batch:3} {name:16} {shown(runs[-1]['microseconds'])} us", flush=True)
        return runs
    for name in arguments.only.split(",") if arguments.only else [*RUNGS, "best"]:
        runs.append(measure(options | {"rung": name}))
        memory = f"  peak {runs[-1]['allocated_bytes'] / 1e6:,.0f} MB in tensors" if arguments.device == "cuda" else ""
        print(f"rung {name:5} batch {runs[-1]['batch']:5}{' alone' if arguments.alone else ''} "
              f"{shown(runs[-1]['samples_per_second'])} samples/s{memory}", flush=True)
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="rungs, 0 to 8 or best, with commas between (default: all)")
    parser.add_argument("--batch", type=int, help="images (default: the rung's; of inference 1 and 16)")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--warmup", type=int, default=20, help="steps before, an epoch of 512 images a batch")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=8, help="processes that load, from rung 1 on")
    parser.add_argument("--alone", action="store_true", help="train on one batch that is on the device already")
    parser.add_argument("--inference", action="store_true", help="measure inference instead")
    parser.add_argument("--start", help="weights, images, order and rates, by resnet18 --save-start")
    parser.add_argument("--side", type=int, default=SIDE, help="pixels of the network's images")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--losses", metavar="FILE", help="write the losses of all steps of one rung there, and end")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else []
    if any(name not in [*RUNGS, "best"] for name in names):
        parser.error(f"argument --only: expected rungs from 0 to 8 or best, with commas between, not {arguments.only}")
    if arguments.losses and (len(names) != 1 or not arguments.start):
        parser.error("argument --losses: expected --only with one rung, and --start, with it")
    if missing is not None:
        sys.exit(f"{sys.argv[0]}: {missing}; expected a Python with PyTorch, NumPy and Pillow")
    if arguments.device == "cuda":
        require(missing)

    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    device = torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu"
    report = {"experiment": "resnet18", "framework": f"PyTorch {torch.__version__}", "device": device}
    if arguments.serve:
        print(json.dumps(report), flush=True)
        for line in sys.stdin:
            options = json.loads(line)
            print(json.dumps(measure_inference(options) if "arrangement" in options else measure(options)), flush=True)
        return
    options = {key: getattr(arguments, key) for key in
               ("batch", "steps", "warmup", "repeats", "workers", "alone", "start", "side", "device")}
    if arguments.losses:
        start = read_safetensors(arguments.start)
        options |= {"rung": names[0], "warmup": 0, "repeats": 1, "steps": len(start["sizes"]), "losses": True}
        with open(arguments.losses, "w", encoding="utf-8") as file:
            json.dump(report | {"losses": measure(options)["losses"]}, file, indent=2)
        return
    report["runs"] = run_all(arguments, options)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)


if __name__ == "__main__":
    main()

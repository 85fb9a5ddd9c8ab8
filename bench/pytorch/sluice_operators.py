"""sluice's operators for PyTorch beside PyTorch's own ways to the same results, in the same process, on one GPU.

Microseconds of a call: waiting for each, back to back, as a `torch.cuda.graph`; forward, and forward with the gradient.

- `giou`: the mean over the real boxes of 1,024 images with room for 256 each, as in giou.py. PyTorch by padding and a mask,
  eagerly and compiled; sluice with ragged targets, with ragged predictions too, with a mask, and within
  `torch.compile(fullgraph=True)`.
- `rows`: sum, max, softmax and sort of 4,096 rows, 0 to 255 values each, beside nested tensors, padding, and a sort of keys.
- `augment`: the published chain on 32 images of 3 × 256 × 256, beside the fastest compiled chain of augment_chains.py.

A line that fails is left out, with the reason. All results are compared before they are timed.

    python3 bench/pytorch/sluice_operators.py --json operators.json
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Callable

try:
    import torch

    import sluice
    missing = None
except ImportError as error:  # `--help` works all the same
    missing = error

import augment_chains
from captured import Work, require
from giou import Meter, Table, both
from giou_losses import Batch, padding_loss, row_offsets


def close(name: str, found: torch.Tensor, expected: torch.Tensor, allowed: float) -> None:
    error = (found.double() - expected.double()).abs().max().item() if found.numel() else 0.0
    if not error <= allowed * max(1.0, expected.double().abs().max().item()):
        raise SystemExit(f"{name} is off by {error}, expected at most {allowed} of the greatest value")


def without_gradient(work: Work) -> Callable[[], Work]:
    def make() -> Work:
        def quiet() -> object:
            with torch.no_grad():
                return work()

        return quiet

    return make


def giou_lines(table: Table) -> None:
    batch = Batch(1024, 256)
    offsets, targets = row_offsets(batch), torch.cat(batch.separate)
    packed = batch.predictions.detach()[batch.mask].requires_grad_()
    whole, half = batch.predictions, batch.predictions_16
    compiled = torch.compile(padding_loss, fullgraph=True)
    ours_compiled = torch.compile(lambda p, t, o: sluice.giou_loss(p, t, o, formula="article"), fullgraph=True)
    losses = [
        ("pytorch, padding", whole, lambda: padding_loss(whole, batch.padded, batch.mask)),
        ("pytorch, compiled padding", whole, lambda: compiled(whole, batch.padded, batch.mask)),
        ("sluice, offsets", whole, lambda: sluice.giou_loss(whole, targets, offsets, formula="article")),
        ("sluice, offsets, bfloat16", half, lambda: sluice.giou_loss(half, targets, offsets, formula="article")),
        ("sluice, ragged predictions", packed, lambda: sluice.giou_loss(packed, targets, offsets, formula="article")),
        ("sluice, mask", whole, lambda: sluice.giou_loss(whole, batch.padded, mask=batch.mask, formula="article")),
        ("sluice, compiled", whole, lambda: ours_compiled(whole, targets, offsets)),
    ]
    expected = padding_loss(whole.double(), batch.padded, batch.mask)
    (gradient,) = torch.autograd.grad(expected, whole)
    for name, leaf, loss in losses:
        if leaf is half:
            continue
        close(f"giou, {name}", loss().detach(), expected.detach(), 1e-4)
        (found,) = torch.autograd.grad(loss(), leaf)
        close(f"giou's gradient, {name}", found, gradient[batch.mask] if leaf is packed else gradient, 1e-4)
    del expected  # its nodes belong to the default stream, and no graph of the same leaf could be captured
    for name, leaf, loss in losses:
        table.line(f"giou: {name}: forward", without_gradient(loss))
        table.line(f"giou: {name}: both", lambda loss=loss, leaf=leaf: both(loss, leaf))
    few = torch.randn(8, device="cuda", requires_grad=True)
    table.line("autograd: the sum of 8 numbers: both", lambda: both(few.sum, few), graph=False)
    # The backward pass then runs on the calling thread, in place of one of its own for each device.
    with torch.autograd.set_multithreading_enabled(False):
        table.line("autograd: the sum of 8 numbers: both, on one thread", lambda: both(few.sum, few), graph=False)
        for name, leaf, loss in losses:
            table.line(f"giou: {name}: both, on one thread", lambda loss=loss, leaf=leaf: both(loss, leaf), graph=False)
    at_once = torch.compile(lambda p, t, o: sluice.giou_loss_and_gradient(p, t, o, formula="article"), fullgraph=True)
    for name, boxes, work in [
            ("sluice, offsets", whole, lambda: sluice.giou_loss_and_gradient(whole, targets, offsets, formula="article")),
            ("sluice, offsets, bfloat16", half, lambda: sluice.giou_loss_and_gradient(half, targets, offsets, formula="article")),
            ("sluice, ragged predictions", packed,
             lambda: sluice.giou_loss_and_gradient(packed, targets, offsets, formula="article")),
            ("sluice, mask", whole, lambda: sluice.giou_loss_and_gradient(whole, batch.padded, mask=batch.mask, formula="article")),
            ("sluice, compiled", whole, lambda: at_once(whole, targets, offsets))]:
        if boxes is not half:
            close(f"giou's gradient at once, {name}", work()[1], gradient[batch.mask] if boxes is packed else gradient, 1e-4)
        table.line(f"giou: {name}: both at once", lambda work=work: work)


def sorted_by_keys(values: torch.Tensor, row_of: torch.Tensor) -> torch.Tensor:
    """Two stable sorts: by value, then by row."""
    by_value = values.argsort(stable=True)
    return values[by_value[row_of[by_value].argsort(stable=True)]]


def row_lines(table: Table) -> None:
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(0, 256, (4096,), generator=generator)
    offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).cuda()
    values = torch.randn(int(lengths.sum()), generator=generator).cuda().requires_grad_()
    row_of = torch.repeat_interleave(torch.arange(4096, device="cuda"), lengths.cuda())
    nested = torch.nested.nested_tensor_from_jagged(values.detach(), offsets)
    plain = values.detach()
    padded = torch.full((4096, 256), -float("inf"), device="cuda")
    padded[torch.arange(256, device="cuda") < lengths.cuda()[:, None]] = plain
    close("sum", sluice.row_sum(plain, offsets), torch.segment_reduce(plain, "sum", offsets=offsets), 1e-4)
    close("sort", sluice.row_sort(plain, offsets)[0], sorted_by_keys(plain, row_of), 0)
    close("softmax", sluice.row_softmax(plain, offsets).sum(), (lengths > 0).sum(), 1e-3)
    lines = [
        ("sum: pytorch, segment_reduce", lambda: torch.segment_reduce(plain, "sum", offsets=offsets)),
        ("sum: pytorch, nested", lambda: nested.sum(1)),
        ("sum: sluice", lambda: sluice.row_sum(plain, offsets)),
        ("max: pytorch, padded", lambda: padded.max(1)),
        ("max: pytorch, segment_reduce", lambda: torch.segment_reduce(plain, "max", offsets=offsets)),
        ("max: sluice, with positions", lambda: sluice.row_max(plain, offsets)),
        ("softmax: pytorch, padded", lambda: padded.softmax(1)),
        ("softmax: pytorch, nested", lambda: nested.softmax(1)),
        ("softmax: sluice", lambda: sluice.row_softmax(plain, offsets)),
        ("sort: pytorch, padded", lambda: padded.sort(1)),
        ("sort: pytorch, by keys", lambda: sorted_by_keys(plain, row_of)),
        ("sort: sluice, with positions", lambda: sluice.row_sort(plain, offsets)),
    ]
    for name, work in lines:
        table.line(f"rows: {name}", without_gradient(work))
    squares = lambda: sluice.row_softmax(values, offsets).square().sum()
    table.line("rows: softmax: sluice: both", lambda: both(squares, values))


def augment_lines(table: Table) -> None:
    images = torch.randint(0, 256, (32, 3, 256, 256), dtype=torch.uint8, device="cuda")
    samples = sluice.sample_ids(torch.arange(32, device="cuda"))
    given = augment_chains.Parameters(32, "cuda").on_device()
    chain = augment_chains.chain_of(augment_chains.exact_sample, augment_chains.compiled)
    ours_compiled = torch.compile(lambda i, s: sluice.augment(i, s), fullgraph=True)
    for name, work in (("pytorch, compiled", lambda: chain(images, *given)), ("sluice", lambda: sluice.augment(images, samples)),
                       ("sluice, float16", lambda: sluice.augment(images, samples, dtype=torch.float16)),
                       ("sluice, compiled", lambda: ours_compiled(images, samples))):
        table.line(f"augment: {name}", without_gradient(work))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("all", "giou", "rows", "augment"), default="all")
    parser.add_argument("--only", help="lines whose name contains this")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each figure, at most about")
    parser.add_argument("--limit", type=float, default=420.0, help="seconds after which no line is begun")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    require(missing)

    table = Table(Meter(arguments.seconds), time.perf_counter(), arguments.limit, arguments.only)
    for name, lines in (("giou", giou_lines), ("rows", row_lines), ("augment", augment_lines)):
        if arguments.part in ("all", name):
            try:
                lines(table)
            except Exception as error:  # one part must not take the others with it
                table.leave_out(name, error)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"experiment": "sluice_operators", "framework": f"PyTorch {torch.__version__}",
                       "device": torch.cuda.get_device_name(), "runs": table.runs, "left_out": table.skipped}, file, indent=2)


if __name__ == "__main__":
    main()

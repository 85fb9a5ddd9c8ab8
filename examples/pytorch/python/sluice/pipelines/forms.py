"""Batches of one form, and what was found out about a stage that works on them."""

from __future__ import annotations

import enum
from typing import Any, Optional

import torch

from sluice.pipelines.captures import is_of
from sluice.pipelines.reach import Reach
from sluice.pipelines.signatures import SCALARS
from sluice.pipelines.trees import has_attributes, is_plain, leaves_of, tensors_of
from sluice.pipelines.watching import Watch, bytes_of, storages_of

WARM_UP = 1  # batches of a form that run eagerly before two are watched
MOST_COPIED = 32 << 20  # bytes that a stage returns, so that its graphs share all other memory
LEAST_SHARED = 16  # or how many times as much its operations write
PATIENCE = 64  # batches without a change, at most, before a stage that changes is captured again


class Form:
    """What is known of batches of one form."""

    def __init__(self, key: tuple) -> None:
        self.key = key
        self.batches = 0
        self.wait = WARM_UP
        self.first: Optional[Reach] = None  # what its Python code reaches; `reach` is complete
        self.reach: Optional[Reach] = None
        self.is_steady = False  # a run has left all as it was
        self.written: list[torch.Tensor] = []  # memory from before that the stage writes, as bytes
        self.written_inputs: list[int] = []
        self.sets_gradients = False
        self.results: Optional[list[torch.Tensor]] = None  # without memory, in place of those that are copied in the graph
        self.refusal = ""
        self.replays = 0
        self.compared: set[bool] = set()  # with eager runs: a graph's first replay, a second one

    def forget(self) -> None:
        """Something changed. A stage that changes all the time is left alone for longer and longer."""
        patience = max(2 * (self.wait - WARM_UP), 2)
        self.wait = WARM_UP + (min(patience, PATIENCE) if self.replays < 8 * patience else 0)
        self.batches, self.replays = WARM_UP if self.wait > WARM_UP else 0, 0
        self.first = self.reach = None
        self.is_steady = False

    def reason_against(self, watch: Watch, inputs: Any, outputs: Any, is_last: bool, device: torch.device) -> str:
        """Why the stage must not be captured, or nothing."""
        reach = self.reach
        assert reach is not None
        history = "carries autograd's history from one stage to the next"
        if any(tensor.requires_grad for tensor in tensors_of(inputs)):
            return f"what it is given {history}"
        if any(map(has_attributes, [*tensors_of(inputs), *tensors_of(outputs)])):
            return "a tensor that it is given or returns has attributes of the program's"
        for leaf in leaves_of(outputs):
            if not isinstance(leaf, (torch.Tensor, float, complex, enum.Enum, *SCALARS)):
                return f"it returns an object of the type {type(leaf).__name__}, which is made anew for each batch"
        others: list[Any] = []
        tensors = tensors_of(outputs, others)
        if any(map(tensors_of, others)):
            return "it returns a dictionary whose keys are tensors, which is made anew for each batch"
        for tensor in tensors:
            if tensor.requires_grad and not (is_last and watch.backward and tensor.dim() == 0):
                return f"what it returns {history}"
        if torch.is_autocast_enabled(device.type) and torch.is_autocast_cache_enabled() and reach.leaves():
            return "autocast is on around the pipeline and keeps casts of weights; expected it in the stage, or without its cache"
        for reason in [*reach.refusals, *operations_against(watch)]:
            return reason
        return ""

    def look_at_gradients(self, watch: Watch, before: dict[int, Any]) -> None:
        """Gradients that the stage found: it replaced them, adds to them, or needs that there are none."""
        reach = self.reach
        if reach is None or not watch.backward and watch.operations is not None:
            if reach is not None and "grad" in reach.names:  # such as whether there is one
                for leaf in reach.leaves():
                    reach.guard.attribute(leaf, "grad", leaf.grad, "gradients that were there before")
            return
        for leaf in reach.leaves():
            found = before.get(id(leaf))
            if found is None:
                reach.guard.attribute(leaf, "grad", None, "gradients that were there before")
                continue
            if watch.operations is None:
                touched = watch.first != "zero_grad" or leaf.grad is found
            else:
                touched = any(address in watch.operations.outside for _, address in storages_of(found))
            if touched and leaf.grad is found:
                reach.guard.attribute(leaf, "grad", found, "gradients that were there before")
                reach.seen[id(found)] = found
            elif touched:
                reach.note("it uses gradients of the batch before, and replaces them")

    def look_at_memory(self, watch: Watch, inputs: Any, device: torch.device) -> None:
        """Memory that is used must have been found from the callable."""
        reach = self.reach
        assert reach is not None
        given = [address for _, address in storages_of(tensors_of(inputs))]
        if watch.operations is None:  # whatever it finds
            written = {address: tensor for tensor, address in storages_of([*reach.seen.values()])}
        else:
            written = watch.operations.written
            found = reach.addresses()
            for address, tensor in watch.operations.outside.items():
                is_number = tensor.device.type == "cpu" and tensor.dim() == 0
                if address not in found and address not in given and not is_number:
                    reach.note(f"it uses a tensor of shape {list(tensor.shape)} that was not found from the stage")
        self.written = [bytes_of(tensor) for address, tensor in written.items() if address not in given]
        self.written_inputs = [place for place, address in enumerate(given) if watch.operations is None or address in written]
        if watch.operations is None:
            return
        for generator in watch.operations.generators:
            if is_of(generator, device) and not any(generator is known for known in reach.generators):
                reach.generators.append(generator)
        watch.operations.outside, watch.operations.written = {}, {}

    def look_at_results(self, watch: Watch, inputs: Any, outputs: Any, is_last: bool) -> None:
        """Whether graphs of several slots can share what they work in. A result must not lie there: the next slot's graph would
        overwrite it while the next stage reads it. Those of the last stage are copied before that anyway."""
        self.results = None
        if is_last or self.sets_gradients or watch.operations is None:
            return
        given = {address for _, address in storages_of(tensors_of(inputs))}
        made = [(tensor, address) for tensor, address in storages_of(tensors_of(outputs)) if address not in given]
        if not all(is_plain(tensor) for tensor, _ in made):
            return
        addresses = {address for _, address in made}
        likes = [torch.empty_like(tensor, device="meta") for tensor, _ in made]
        if (len(addresses) == len(made) and addresses <= watch.operations.made
                and all(like.stride() == tensor.stride() for like, (tensor, _) in zip(likes, made))
                and sum(tensor.nbytes for tensor, _ in made) <= max(MOST_COPIED, watch.operations.bytes // LEAST_SHARED)):
            self.results = likes


def operations_against(watch: Watch) -> list[str]:
    return [] if watch.operations is None else watch.operations.refusals

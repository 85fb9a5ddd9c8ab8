"""A stage as CUDA graphs: one for each slot, since each reads and writes that slot's memory."""

from __future__ import annotations

from typing import Any

import torch

from sluice.pipelines.devices import Device
from sluice.pipelines.trees import call, map_tensors, signature_of, tensors_of

WARM_UP = 3  # batches that a stage runs eagerly before it is captured


class StageGraphs:
    """Runs a stage for a slot: eagerly at first, then as a graph, which is captured once and replayed for every batch whose
    tensors lie where they lay then. Other batches, such as a shorter last one, run eagerly."""

    def __init__(self, given: Any, device: Device, slots: int) -> None:
        self.given = given
        self.device = device
        self.graphs: list[Any] = [None] * slots
        self.signatures: list[Any] = [None] * slots
        self.outputs: list[Any] = [None] * slots
        self.kept: list[Any] = [None] * slots  # fixed memory for what an eager stage returns
        self.eager = self.replays = self.seen = 0
        self.refusal = ""

    def run(self, slot: int, stream: Any, inputs: Any) -> tuple[Any, bool]:
        """What the stage returned, and whether it lies in memory that the slot's next batch overwrites."""
        self.seen += 1
        if not self.given.graph:
            self.eager += 1
            return self.fixed(slot, call(self.given.function, inputs)), True
        signature = signature_of(inputs)
        if self.graphs[slot] is not None and self.signatures[slot] == signature:
            self.replays += 1
            self.graphs[slot].replay()
            return self.outputs[slot], True
        if self.graphs[slot] is None and not self.refusal and self.seen > WARM_UP:
            if self.captured(slot, stream, inputs, signature):
                self.replays += 1
                self.graphs[slot].replay()
                return self.outputs[slot], True
        self.eager += 1
        return call(self.given.function, inputs), False

    def captured(self, slot: int, stream: Any, inputs: Any, signature: Any) -> bool:
        # Addresses that change from batch to batch cannot be captured; the first lap finds out.
        if self.signatures[slot] != signature:
            self.signatures[slot] = signature
            return False
        # What the stage passes through is kept with the graph, and must not count as somebody's who keeps the batch.
        aliases = map_tensors(lambda tensor: tensor if tensor.requires_grad else tensor.detach(), inputs)
        try:
            self.graphs[slot], self.outputs[slot] = self.device.capture(stream, lambda: call(self.given.function, aliases))
        except Exception as error:  # whatever a stage does that cannot be captured
            self.refusal = " ".join(str(error).split())[:200]
            self.graphs[slot] = None
            self.device.synchronize()
            return False
        return True

    def fixed(self, slot: int, outputs: Any) -> Any:
        """Copied to memory that stays, where later stages' graphs find it."""
        tensors = tensors_of(outputs)
        kept = self.kept[slot]
        if kept is None or [(t.shape, t.dtype) for t in kept] != [(t.shape, t.dtype) for t in tensors]:
            if kept is not None:  # a shorter batch: its readers run eagerly
                return outputs
            kept = self.kept[slot] = [torch.empty_like(t) for t in tensors]
        places = iter(kept)

        def copied(tensor: torch.Tensor) -> torch.Tensor:
            place = next(places)
            place.copy_(tensor.detach())
            return place

        return map_tensors(copied, outputs)

    @staticmethod
    def copied(outputs: Any) -> Any:
        return map_tensors(lambda tensor: tensor.detach().clone(), outputs)

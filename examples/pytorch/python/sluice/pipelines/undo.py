"""What a call of a stage may change on the host, put back: a capture runs the stage's Python code, and nothing else of it."""

from __future__ import annotations

from typing import Any

import torch

from sluice.pipelines.reach import Reach


class Undo:
    """Taken before a capture."""

    def __init__(self, reach: Reach) -> None:
        self.guard = reach.guard
        self.gradients = [(leaf, leaf.grad) for leaf in reach.leaves()]
        self.states = [(optimizer, dict(vars(optimizer)), optimizer.state, copied(optimizer.state))
                       for optimizer in reach.optimizers]
        self.numbers = torch.get_rng_state()

    def undo(self) -> None:
        self.guard.restore()
        for leaf, gradient in self.gradients:
            if leaf.grad is not gradient:
                leaf.grad = gradient
        for optimizer, attributes, state, held in self.states:
            vars(optimizer).clear()
            vars(optimizer).update(attributes)
            state.clear()
            state.update(held)
        torch.set_rng_state(self.numbers)


def copied(state: Any) -> dict:
    return {key: dict(value) if isinstance(value, dict) else value for key, value in state.items()}

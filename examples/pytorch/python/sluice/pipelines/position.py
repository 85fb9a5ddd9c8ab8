"""Where an iteration over a loader is, so that a checkpoint in the middle of an epoch can go on with the next batch."""

from __future__ import annotations

import collections
import copy
from typing import Any, Callable, Iterable, Iterator, Optional

import torch

from sluice.arguments import counted, is_integer, named, shown
from sluice.pipelines.trees import attribute_of


NONE: Any = object()  # in place of a batch


class Position:
    """Follows one iteration at a time. A loader is asked ahead of what has been handed out, so its own state after each batch is
    held until that batch's turn; a loader without `state_dict` begins its epoch again, and the batches before are skipped."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.loader: Any = None
        self.is_stateful = False
        self.batches = 0  # handed out
        self.start: dict[str, Optional[torch.Tensor]] = {}  # random numbers when the epoch began
        self.ahead: collections.deque = collections.deque()  # the loader's state after each batch that waits
        self.reached: Any = None
        self.resumed: Optional[dict[str, Any]] = None
        self.done: Optional[Callable[[], int]] = None

    def begin(self, loader: Iterable) -> Iterator[Any]:
        """The loader's iterator, behind the batches that a loaded state says were handed out. Where the loader raises, the state is for
        the next iteration."""
        resumed, self.resumed = self.resumed, None
        try:
            return self.begun(loader, resumed)
        except BaseException:
            self.resumed = resumed
            raise

    def begun(self, loader: Iterable, resumed: Optional[dict[str, Any]]) -> Iterator[Any]:
        self.loader, self.reached, self.done = loader, None, None
        self.is_stateful = all(attribute_of(loader, name) is not None for name in ("state_dict", "load_state_dict"))
        self.batches = 0 if resumed is None else resumed["batches"]
        self.ahead.clear()
        if self.batches > 0 and resumed["loader" if self.is_stateful else "random"] is None:
            other, this = ("without", "has them") if self.is_stateful else ("with", "has none")
            raise ValueError(f"sluice.{self.owner}: the state is of a loader {other} state_dict() and load_state_dict(), and this one {this}; "
                             "expected the loader whose state it is")
        if self.is_stateful:
            if resumed is not None and resumed["loader"] is not None:
                loader.load_state_dict(resumed["loader"])
            self.reached = None if resumed is None else resumed["loader"]
            return iter(loader)
        if resumed is None or resumed["random"] is None:
            self.start = self.random_state()
            return iter(loader)
        now = torch.get_rng_state()
        self.start = {"random": resumed["random"], "generator": resumed["generator"]}
        try:
            torch.set_rng_state(resumed["random"])
            if resumed["generator"] is not None and self.generator() is not None:
                self.generator().set_state(resumed["generator"])
            source = iter(loader)
            for place in range(self.batches):
                if next(source, NONE) is NONE:
                    raise ValueError(f"sluice.{self.owner}: the state is behind {counted(self.batches, 'batch')}, and the loader gave {place}; "
                                     "expected the loader whose state it is")
        finally:
            torch.set_rng_state(now)
        return source

    def follow(self, loader: Iterable, begun: Callable[[], int]) -> Iterator[Any]:
        """The same, for who counts by itself how many batches are done, from 0 on: `begun()`."""
        source = self.begin(loader)
        first = self.batches
        self.done = lambda: first + begun()
        return self.noted(source) if self.is_stateful else source

    def noted(self, source: Iterator[Any]) -> Iterator[Any]:
        for batch in source:
            self.catch_up()
            self.fetched()
            yield batch
            del batch

    def catch_up(self) -> None:
        while self.done is not None and self.batches < self.done():
            self.passed()

    def generator(self) -> Optional[torch.Generator]:
        found = attribute_of(self.loader, "generator")
        return found if isinstance(found, torch.Generator) else None

    def random_state(self) -> dict[str, Optional[torch.Tensor]]:
        generator = self.generator()
        return {"random": torch.get_rng_state(), "generator": None if generator is None else generator.get_state()}

    def fetched(self) -> None:
        """The loader has given a batch."""
        if self.is_stateful:
            self.ahead.append(copy.deepcopy(self.loader.state_dict()))

    def passed(self) -> None:
        """The oldest of these batches counts as done: a checkpoint from now on begins behind it."""
        self.batches += 1
        if self.is_stateful:
            self.reached = self.ahead.popleft()

    def let_go(self) -> None:
        """The iteration has ended. A generator ends with its last holder, as in a plain loop."""
        if not self.is_stateful and attribute_of(self.loader, "__next__") is not None:
            self.loader = None

    def end(self) -> None:
        """The epoch is over: a checkpoint begins the next."""
        self.batches, self.start, self.done = 0, {}, None
        if self.is_stateful:
            self.reached = copy.deepcopy(self.loader.state_dict())

    def state_dict(self) -> dict[str, Any]:
        if self.resumed is not None:
            return dict(self.resumed)
        self.catch_up()
        return {"batches": self.batches, "loader": self.reached, "random": self.start.get("random"),
                "generator": self.start.get("generator")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not isinstance(state, dict):
            raise TypeError(f"sluice.{self.owner}: the state is {named(type(state))}, expected what state_dict() gave")
        missing = {"batches", "loader", "random", "generator"} - set(state)
        if missing:
            raise ValueError(f"sluice.{self.owner}: the state has no {', '.join(sorted(missing))}; expected what state_dict() gave")
        batches = state["batches"]
        if not is_integer(batches) or batches < 0:
            raise ValueError(f"sluice.{self.owner}: the state's batches are {shown(batches)}, expected what state_dict() gave")
        for name in ("random", "generator"):
            if state[name] is not None and getattr(state[name], "dtype", None) is not torch.uint8:
                raise ValueError(f"sluice.{self.owner}: the state's {name} is {shown(state[name])}, expected what state_dict() gave")
        self.resumed = {**state, "batches": int(batches)}

"""Where an iteration is, and whose state that is."""

import pytest
import torch

import sluice


class Stateful:
    """A loader with a state, as torchdata's."""

    def __init__(self) -> None:
        self.place = 0

    def __iter__(self):
        while self.place < 6:
            self.place += 1
            yield torch.tensor(self.place)
        self.place = 0

    def state_dict(self) -> dict:
        return {"place": self.place}

    def load_state_dict(self, state: dict) -> None:
        self.place = state["place"]


def with_loader(owner, device, loader):
    run = sluice.pipeline(torch.clone, device=device) if owner == "pipeline" else sluice.prefetch(loader, device)
    return run, (lambda: run(loader)) if owner == "pipeline" else (lambda: iter(run))


@pytest.mark.parametrize("owner", ["pipeline", "prefetch"])
@pytest.mark.parametrize("other, this, said", [
    (Stateful, lambda: [torch.tensor(i) for i in range(6)], "with state_dict() and load_state_dict(), and this one has none"),
    (lambda: [torch.tensor(i) for i in range(6)], Stateful, "without state_dict() and load_state_dict(), and this one has them")])
def test_a_state_of_a_loader_of_another_kind_is_refused(device, owner, other, this, said):
    """It would begin its epoch again, without a word."""
    before, iterate = with_loader(owner, device, other())
    results = iterate()
    next(results), next(results)
    state = before.state_dict()
    results.close()
    after, iterate = with_loader(owner, device, this())
    after.load_state_dict(state)
    with pytest.raises(ValueError) as error:
        next(iterate())
    assert str(error.value) == f"sluice.{owner}: the state is of a loader {said}; expected the loader whose state it is"


@pytest.mark.parametrize("owner", ["pipeline", "prefetch"])
def test_a_state_between_epochs_is_anyones(device, owner):
    before, iterate = with_loader(owner, device, Stateful())
    assert sum(1 for _ in iterate()) == 6
    after, iterate = with_loader(owner, device, [torch.tensor(i) for i in range(6)])
    after.load_state_dict(before.state_dict())
    assert sum(1 for _ in iterate()) == 6

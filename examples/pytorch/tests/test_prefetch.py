"""Batches that come to the device ahead of their use."""

import pytest
import torch
from watched_device import WatchedDevice

import sluice


def numbered(count: int, size: int = 4) -> list[tuple[torch.Tensor, dict]]:
    return [(torch.full((size,), float(i)), {"label": torch.tensor(i), "name": str(i)}) for i in range(count)]


@pytest.mark.parametrize("slots", [2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_same_batches_for_three_epochs(device, slots, count):
    data = numbered(count)
    ahead = sluice.prefetch(data, device, slots)
    assert len(ahead) == count
    for _ in range(3):
        found = 0
        for x, more in ahead:
            assert x.device.type == device and x.tolist() == [found] * 4
            assert more["label"].item() == found and more["name"] == str(found)
            found += 1
        assert found == count


def test_slots_are_allocated_once(device):
    ahead = sluice.prefetch(numbered(30) + numbered(1, 2), device, 2)
    addresses = [{x.data_ptr() for x, _ in ahead} for _ in range(3)]
    assert all(len(found) == 3 for found in addresses) and addresses[0] == addresses[2]
    assert ahead.intake.allocations == 6  # two tensors for two slots and the batch before; a short batch is the first part of one


def test_a_batch_that_is_kept(device):
    kept = []
    with pytest.raises(RuntimeError, match=r"a tensor of batch 0 is still held, .* expected a clone\(\)"):
        for x, _ in sluice.prefetch(numbered(9), device):
            kept.append(x[:2])  # a view holds it, too
    assert len(kept) == 2
    for x, _ in sluice.prefetch(numbered(9), device):
        kept.append(x.clone())


def test_the_batch_before_may_be_read(device):
    """A difference of frames is that of a plain loop, over the border of two epochs too."""
    ahead, before, found = sluice.prefetch(numbered(9), device), None, []
    for _ in range(3):
        for x, _ in ahead:
            found.append((x if before is None else x - before).clone())
            before = x
    assert [difference[0].item() for difference in found] == [0.0] + [1.0] * 8 + ([-8.0] + [1.0] * 8) * 2


@pytest.mark.parametrize("size", [4, 1 << 15])
def test_a_first_batch_that_is_kept_for_later(device, size):
    ahead = sluice.prefetch(numbered(9, size), device)
    first, _ = next(iter(ahead))
    for _ in range(2):
        for i, (x, _) in enumerate(ahead):
            assert x[0] == i and x[-1] == i
        assert first.sum() == 0
    with pytest.raises(RuntimeError, match="a tensor of batch 2 is still held"):
        held = []
        for x, more in ahead:
            held += [x] if more["name"] == "2" else []
    assert held[0][0] == 2 and first.sum() == 0  # neither was written


HOLD = {"view": lambda x: x[:2], "detach": lambda x: x.detach(), "data": lambda x: x.data,
        "type": lambda x: x.view(torch.int32),
        "parameter": lambda x: torch.nn.Parameter(x), "numpy": lambda x: x.numpy(), "dlpack": lambda x: torch.from_dlpack(x),
        "history": lambda x: (x * torch.ones(4, device=x.device, requires_grad=True)).sum()}


@pytest.mark.parametrize("how", HOLD)
def test_whatever_holds_a_batch_is_found(device, how):
    if how == "numpy" and device != "cpu":
        pytest.skip("NumPy has arrays of the CPU alone")
    kept = []
    with pytest.raises(RuntimeError, match="a tensor of batch 2 is still held"):
        for x, more in sluice.prefetch(numbered(9), device):
            if more["name"] == "2":
                kept.append(HOLD[how](x))
    assert len(kept) == 1


def test_unreachable_cycles_are_no_holders(device):
    class Node:
        pass

    for x, _ in sluice.prefetch(numbered(9), device):
        node = Node()
        node.own, node.x = node, x


def test_what_an_iteration_before_left_is_no_error(device):
    ahead = sluice.prefetch(numbered(9), device)
    for kept, _ in ahead:
        break
    found = []
    for x, more in ahead:
        found.append(x[0].item())
        if more["name"] == "4":
            kept = None  # and is watched from then on
    assert found == list(range(9))
    with pytest.raises(RuntimeError, match="is still held"):
        held = []
        for x, _ in ahead:
            held.append(x.detach())


@pytest.mark.parametrize("size", [4, 1 << 15])
def test_batches_that_require_a_gradient(device, size):
    """Which leads back to the loader's tensors, beside others; these batches may be kept."""
    weight, kept = torch.full((size,), 2.0, requires_grad=True), []
    for i, (x, number) in enumerate(sluice.prefetch([(weight * i, torch.full((4,), i)) for i in range(9)], device)):
        assert x.requires_grad and number.tolist() == [i] * 4 and x.tolist() == [2.0 * i] * size
        kept.append(x)
        x.sum().backward()
    assert weight.grad.tolist() == [sum(range(9))] * size and [x[0].item() for x in kept] == [2.0 * i for i in range(9)]


def test_gradients_where_the_loop_wants_them(device):
    weight = torch.ones(4, requires_grad=True)
    for around, wanted in ((torch.enable_grad, True), (torch.no_grad, False), (torch.inference_mode, False)):
        with around():
            assert [x.requires_grad for x in sluice.prefetch([weight, weight.to_sparse()] * 3, device)] == [wanted] * 6


def test_a_loader_that_overwrites_its_batch(device):
    def refilled():
        x = torch.zeros(4)
        for i in range(6):
            x.fill_(i)
            yield x

    with pytest.raises(RuntimeError, match="the loader wrote batch 1 into the memory of batch 0"):
        list(sluice.prefetch(refilled(), device))
    ahead = sluice.prefetch(refilled(), device, reuse=True)
    assert [x[0].item() for x in ahead] == list(range(6))


@pytest.mark.parametrize("slots", [2, 3])
@pytest.mark.parametrize("times", [2, 3, 4, 9])
def test_a_loader_that_overwrites_a_batch_it_gave_several_times(device, slots, times):
    def loader():
        x = torch.zeros(4)
        for _ in range(times):
            yield x
        yield x.add_(1)

    ahead = sluice.prefetch(loader(), device, slots)
    with pytest.raises(RuntimeError, match=f"the loader wrote batch {times} into the memory of batch {times - 1},"):
        list(map(float, (x[0] for x in ahead)))
    assert ahead.versions == {}


def test_an_early_stop_and_an_error(device):
    data = numbered(9)
    ahead = sluice.prefetch(data, device)
    for x, _ in ahead:
        if x[0] == 3:
            break
    # The loop's variables hold batch 3, which is no error after a break.
    assert [x[0].item() for x, _ in ahead] == list(range(9))
    with pytest.raises(ZeroDivisionError):
        for x, _ in sluice.prefetch(data, device):
            x = 1 / 0
    with pytest.raises(ValueError, match="slots is 1, expected an integer of 2 or more"):
        sluice.prefetch(data, device, 1)
    for make in (lambda slots: sluice.prefetch(data, device, slots), lambda slots: sluice.pipeline(len, device=device, slots=slots)):
        with pytest.raises(ValueError, match="slots is 1048577, expected at most 1048576"):
            make(2 ** 20 + 1)


@pytest.mark.parametrize("slots", [2, 3, 4])
@pytest.mark.parametrize("good", [0, 1, 2, 5])
def test_batches_before_an_error_of_the_loader_come_first(device, slots, good):
    def loader():
        yield from numbered(good)
        raise OSError("the disk is full")

    found = []
    with pytest.raises(OSError, match="the disk is full"):
        for x, _ in sluice.prefetch(loader(), device, slots):
            found.append(x[0].item())
    assert found == list(range(good))


def test_a_consumer_that_changes_its_stream():
    """The batch that comes next was copied where the consumer was when it asked for the one before."""
    for small in (-1, 1 << 16):
        device = WatchedDevice()
        ahead = sluice.prefetch([torch.tensor(i) for i in range(11)], device)
        ahead.small = small
        room = ahead.intake.room

        def watched_room(slot, place, like, device=device, ahead=ahead, room=room):
            device.access(ahead.intake.slots.index(slot), True, "copy")
            return room(slot, place, like)

        ahead.intake.room = watched_room
        streams, batches = [device.stream() for _ in range(2)], iter(ahead)
        for i in range(11):
            with device.on(streams[i % 2]):
                if i > 0:  # what is enqueued there comes after the work on the batch before, as the caller has to see to
                    event = device.event()
                    device.record(event, streams[(i - 1) % 2])
                    device.wait(streams[i % 2], event)
                assert next(batches).item() == i
                device.access(i % 3, False, "consumer")
        assert device.races == []


def test_two_iterations_at_once(device):
    ahead = sluice.prefetch([torch.tensor(float(i)) for i in range(9)], device)
    first, second = iter(ahead), iter(ahead)
    x = next(first)
    with pytest.raises(RuntimeError, match="an iteration is under way; expected one at a time"):
        next(second)
    assert x.item() == 0
    del x
    assert [x.item() for x in first] == list(range(1, 9))
    assert [x.item() for x in ahead] == list(range(9))


class Counting:
    """A loader with a state of its own, as torchdata's StatefulDataLoader."""

    def __init__(self, count: int) -> None:
        self.count, self.at = count, 0

    def state_dict(self) -> dict:
        return {"at": self.at}

    def load_state_dict(self, state: dict) -> None:
        self.at = state["at"]

    def __iter__(self):
        while self.at < self.count:
            self.at += 1
            yield torch.tensor(float(self.at - 1))
        self.at = 0


class TestCheckpoints:
    def shuffled(self, generator: bool, workers: int = 0) -> torch.utils.data.DataLoader:
        given = torch.Generator().manual_seed(5) if generator else None
        return torch.utils.data.DataLoader(torch.arange(24), batch_size=3, shuffle=True, generator=given, num_workers=workers)

    @pytest.mark.parametrize("slots", [2, 3])
    @pytest.mark.parametrize("kind", ["list", "stateful", "shuffled", "generator", "workers"])
    @pytest.mark.parametrize("stop", [1, 4, 8])
    def test_goes_on_with_the_next_batch(self, device, slots, kind, stop):
        def make() -> sluice.Prefetch:
            loader = {"list": lambda: [torch.tensor(float(i)) for i in range(8)], "stateful": lambda: Counting(8),
                      "shuffled": lambda: self.shuffled(False), "generator": lambda: self.shuffled(True),
                      "workers": lambda: self.shuffled(True, 2)}[kind]()
            return sluice.prefetch(loader, device, slots)

        def batches(ahead) -> list:
            return [x.tolist() for x in ahead]

        torch.manual_seed(3)
        undisturbed = make()
        expected = [batches(undisturbed) for _ in range(3)]
        torch.manual_seed(3)
        before = make()
        found = [batches(before), []]
        for x in before:
            found[1].append(x.tolist())
            if len(found[1]) == stop:
                state, numbers = before.state_dict(), torch.get_rng_state()
                break
        torch.manual_seed(99)
        after = make()
        after.load_state_dict(state)
        assert after.state_dict() is not state
        torch.set_rng_state(numbers)
        found[1] += batches(after)
        found.append(batches(after))
        assert found == expected

    def test_a_state_can_be_saved(self, device, tmp_path):
        ahead = sluice.prefetch(self.shuffled(True), device)
        next(iter(ahead))
        torch.save(ahead.state_dict(), tmp_path / "state.pt")
        loaded = torch.load(tmp_path / "state.pt", weights_only=True)
        assert loaded["batches"] == 1
        ahead.load_state_dict(loaded)
        assert [sum(1 for _ in ahead) for _ in range(2)] == [7, 8]

    def test_between_epochs_the_next_one_begins(self, device):
        ahead = sluice.prefetch([torch.tensor(i) for i in range(5)], device)
        assert sum(1 for _ in ahead) == 5
        ahead.load_state_dict(ahead.state_dict())
        assert sum(1 for _ in ahead) == 5

    def test_wrong_states(self, device):
        ahead = sluice.prefetch([torch.tensor(i) for i in range(5)], device)
        with pytest.raises(ValueError, match="the state has no batches, generator, loader, random; expected what state_dict"):
            ahead.load_state_dict({})
        running = iter(ahead)
        next(running)
        with pytest.raises(RuntimeError, match="an iteration is under way"):
            ahead.load_state_dict(ahead.state_dict())


def test_what_is_shown(device):
    ahead = sluice.prefetch([1, 2], device)
    assert repr(ahead) == f"sluice.prefetch([1, 2], '{ahead.device.device}', slots=2, reuse=False)" and len(ahead) == 2


@pytest.mark.parametrize("slots", [2, 3, 4])
@pytest.mark.parametrize("small", [-1, 1 << 16])
def test_every_access_is_ordered(slots, small):
    device = WatchedDevice()
    ahead = sluice.prefetch([torch.tensor(i) for i in range(11)], device, slots)
    ahead.small = small
    assert ahead.steps.device is device
    room = ahead.intake.room

    def watched_room(slot, place, like):
        device.access(ahead.intake.slots.index(slot), True, "copy")
        return room(slot, place, like)

    ahead.intake.room = watched_room
    streams = [device.stream() for _ in range(2)]
    for epoch in range(3):
        with device.on(streams[epoch % 2]):  # a consumer that changes streams between epochs
            for i in ahead:
                device.access((11 * epoch + i.item()) % (slots + 1), False, "consumer")
                if i > 0:
                    device.access((11 * epoch + i.item() - 1) % (slots + 1), False, "consumer")
        for stream in streams:  # which is then the caller's to order
            event = device.event()
            device.record(event, stream)
            for other in streams:
                device.wait(other, event)
    assert device.races == []


@pytest.mark.parametrize("slots", [2, 3])
def test_every_wait_is_needed(slots):
    """Without any one of them, an access is not ordered."""
    def races(skip: int) -> tuple[int, int]:
        device = WatchedDevice(skip)
        ahead = sluice.prefetch([torch.tensor(i) for i in range(9)], device, slots)
        ahead.small = -1  # else the consumer's stream orders all
        room = ahead.intake.room

        def watched_room(slot, place, like):
            device.access(ahead.intake.slots.index(slot), True, "copy")
            return room(slot, place, like)

        ahead.intake.room = watched_room
        for i in ahead:
            device.access(i.item() % (slots + 1), False, "consumer")
            if i > 0:
                device.access((i.item() - 1) % (slots + 1), False, "consumer")
        return device.waits, len(device.races)

    waits, none = races(-1)
    assert none == 0
    missed = [skip for skip in range(waits) if races(skip)[1] == 0]
    # A copy into a set that was not read yet waits for nothing. Between these, the first batch is read.
    assert missed == [*range(slots), slots + 1], missed


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("size", [1 << 10, 1 << 18])
def test_delays_and_memory_on_a_device(size):
    data = [(torch.full((size,), float(i)).pin_memory(),) for i in range(50)]
    ahead = sluice.prefetch(data, "cuda")
    generator = torch.Generator().manual_seed(1)
    for epoch in range(21):
        for i, (x,) in enumerate(ahead):
            torch.cuda._sleep(int(torch.randint(0, 300_000, (1,), generator=generator)))
            assert torch.equal(x, torch.full_like(x, float(i)))
        if epoch == 0:
            torch.cuda.synchronize()
            before = torch.cuda.memory_reserved()
    assert torch.cuda.memory_reserved() == before


@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError])
def test_what_the_loader_raises_comes_after_its_batches(device, kind):
    def loader():
        yield from (torch.full((2,), float(i)) for i in range(7))
        raise kind

    ahead, found = sluice.prefetch(loader(), device), []
    with pytest.raises(kind):
        for x in ahead:
            found.append(x[0].item())
    assert found == list(range(7)) and ahead.state_dict()["batches"] == 7

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
    assert all(len(found) == 2 for found in addresses) and addresses[0] == addresses[2]
    assert ahead.intake.allocations == 4  # two tensors for two slots; a short batch is the first part of one


def test_a_batch_that_is_kept(device):
    kept = []
    with pytest.raises(RuntimeError, match=r"a tensor of batch 0 is still held, .* expected a clone\(\)"):
        for x, _ in sluice.prefetch(numbered(9), device):
            kept.append(x[:2])  # a view holds it, too
    assert len(kept) == 2
    for x, _ in sluice.prefetch(numbered(9), device):
        kept.append(x.clone())


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


@pytest.mark.parametrize("slots", [2, 3, 4])
def test_every_access_is_ordered(slots):
    device = WatchedDevice()
    ahead = sluice.prefetch([torch.tensor(i) for i in range(11)], device, slots)
    room = ahead.intake.room

    def watched_room(slot, place, like):
        device.access(ahead.intake.slots.index(slot), True, "copy")
        return room(slot, place, like)

    ahead.intake.room = watched_room
    streams = [device.stream() for _ in range(2)]
    for epoch in range(3):
        with device.on(streams[epoch % 2]):  # a consumer that changes streams between epochs
            for i in ahead:
                device.access(i.item() % slots, False, "consumer")
        for stream in streams:  # which is then the caller's to order
            event = device.event()
            device.record(event, stream)
            for other in streams:
                device.wait(other, event)
    assert device.races == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_delays_and_memory_on_a_device():
    data = [(torch.full((1 << 18,), float(i)).pin_memory(),) for i in range(50)]
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

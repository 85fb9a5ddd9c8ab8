"""Batches and results that cannot be: one sentence that names them."""

import pytest
import torch
from graphing_device import GraphingDevice
from small_training import SCHEDULES

import sluice

np = pytest.importorskip("numpy")


class Items(list):
    """With an attribute that leads back to it."""

    def __init__(self, *items):
        super().__init__(items)
        self.owner = self


def own_dict():
    batch = {"x": torch.ones(2)}
    batch["more"] = [(batch,)]
    return batch


def own_list():
    batch = [torch.ones(2)]
    batch.append(batch)
    return batch


def deep_list():
    batch = [torch.ones(2)]
    for _ in range(5000):
        batch = [batch]
    return batch


ENDLESS = {"dict": own_dict, "list": own_list, "nested lists": deep_list}
SENTENCE = r"a (dict|list|tuple) contains itself, or is nested deeper than Python's limit of calls; expected a tree of containers$"


def device_of(device):
    return GraphingDevice() if device == "cpu" else device


@pytest.mark.parametrize("kind", ENDLESS)
class TestEndless:
    @pytest.mark.parametrize("verify", [False, True])
    @pytest.mark.parametrize("schedule", SCHEDULES)
    def test_of_a_batch(self, device, kind, schedule, verify):
        run = sluice.pipeline(lambda *x: 1, schedule=schedule, device=device_of(device), verify=verify)
        with pytest.raises(ValueError, match=f"^{SENTENCE}"):
            list(run([ENDLESS[kind]()]))
        assert list(run([torch.ones(2)])) == [1]

    @pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
    def test_of_a_result(self, device, kind, schedule):
        run = sluice.pipeline(lambda x: x + 1, lambda x: ENDLESS[kind](), schedule=schedule, device=device_of(device))
        with pytest.raises(sluice.StageError, match=f"^stage '<lambda>', batch 0: ValueError: {SENTENCE}"):
            list(run([torch.ones(2)] * 9))

    def test_elsewhere(self, device, kind):
        with pytest.raises(ValueError, match=SENTENCE):
            list(sluice.prefetch([ENDLESS[kind]()], device))
        for batch, result in ((ENDLESS[kind](), 1), (torch.ones(2), ENDLESS[kind]())):
            with pytest.raises(ValueError, match=SENTENCE):
                sluice.verify_schedules(lambda schedule: sluice.pipeline(lambda *x: result, schedule=schedule, device=device), [batch])

    def test_a_result_of_a_plain_loop_passes(self, device, kind):
        assert len(list(sluice.pipeline(lambda x: ENDLESS[kind](), schedule="serial", device=device)([torch.ones(2)] * 3))) == 3


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_attribute_that_leads_back(device, schedule):
    """It is no container's."""
    run = sluice.pipeline(lambda x, y: x + y, schedule=schedule, device=device_of(device))
    assert [x[0].item() for x in run([Items(torch.full((2,), float(i)), 1) for i in range(30)])] == [i + 1.0 for i in range(30)]

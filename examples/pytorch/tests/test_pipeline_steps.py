"""A pipeline's waits by PyTorch's own calls, one by one beside the plan that the watched device checks. PyTorch's part is pretended, so
that this runs without a GPU."""

import contextlib
import ctypes
import random
from types import SimpleNamespace

import pytest
import torch
from pretended_device import Pretended
from watched_device import WatchedDevice

import sluice
from sluice.pipelines.compiled import CompiledCopies, CompiledSteps, Library
from sluice.pipelines.devices import CudaSteps
from sluice.pipelines.plan import Plan, Steps

LOG: list = []


class PretendedEvent:
    made = 0

    def __init__(self) -> None:
        self.name = PretendedEvent.made
        PretendedEvent.made += 1

    def record(self, stream) -> None:
        LOG.append(("record", self.name, stream.stream_id))

    def wait(self, stream) -> None:
        LOG.append(("wait", self.name, stream.stream_id))

    def query(self) -> bool:
        return False

    def synchronize(self) -> None:
        LOG.append(("host", self.name))


class Logged(WatchedDevice):
    """The same log from a plan that is carried out in the ordinary way."""

    def __init__(self, caller) -> None:
        super().__init__()
        self.current = [caller]

    def event(self):
        return PretendedEvent()

    def record(self, event, stream) -> None:
        event.record(stream)

    def wait(self, stream, event) -> None:
        event.wait(stream)

    def wait_on_host(self, event) -> None:
        event.synchronize()

    def switch(self, stream) -> None:
        super().switch(stream)
        LOG.append(("current", stream.stream_id, stream.device_index))


def stream(number: int, device: int = 1) -> SimpleNamespace:
    return SimpleNamespace(stream_id=number, device_index=device, device_type=1)


@pytest.fixture
def pretended(monkeypatch):
    state = SimpleNamespace(current=(90, 1, 1), device=0)

    def set_stream(number, index, kind) -> None:
        state.current, state.device = (number, index, kind), index
        LOG.append(("current", number, index))

    monkeypatch.setattr(torch._C, "_CudaEventBase", PretendedEvent, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_setStream", set_stream, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentStream", lambda index: state.current, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: state.device, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_setDevice", lambda index: setattr(state, "device", index), raising=False)
    monkeypatch.setattr(torch.cuda, "Stream", lambda stream_id, device_index, device_type: stream(stream_id, device_index))
    return state


def log_of(make, plan) -> list:
    PretendedEvent.made = 0
    LOG.clear()
    steps = make()
    for slot in range(plan.slots):
        for beginning in (plan.begin, plan.begin_small):
            steps.begin(beginning(slot), plan.copied(slot))
            for place in range(beginning == plan.begin_small, len(plan.stages)):
                steps.run(plan.stage(slot, place))
            steps.run(plan.end_and_read(slot) if slot else plan.end(slot))
        steps.restore()
        steps.read(plan.read(slot))
        steps.wait(plan.copied(slot))
    steps.begin(plan.begin(0), plan.copied(0))  # and a stage fails
    steps.restore()
    return list(LOG)


@pytest.mark.parametrize("stages", [[1], [1, 2], [1, 2, 1], [1, 1], [1, 2, 3, 2]])
def test_the_same_calls_as_the_plan_says(pretended, stages):
    plan = Plan(stages, 3)
    streams = [stream(number) for number in range(len(stages) + 1)]
    device = SimpleNamespace(device=torch.device("cuda", 1), event=PretendedEvent,
                             wait_on_host=lambda event: event.synchronize())
    assert log_of(lambda: CudaSteps(device, plan, streams), plan) == log_of(lambda: Steps(Logged(stream(90)), plan, streams), plan)
    assert pretended.current == (90, 1, 1) and pretended.device == 0  # the caller's, whose device is another


@pytest.mark.parametrize("stages", [[1], [1, 2], [1, 2, 1], [1, 1], [1, 2, 3, 2]])
def test_the_library_does_what_the_plan_says(compiled, monkeypatch, stages):
    calls, plan = Library(compiled), Plan(stages, 3)
    notes, clear = ctypes.CDLL(str(compiled)).pretended_notes, ctypes.CDLL(str(compiled)).pretended_clear
    notes.restype = ctypes.c_char_p
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    handles = [1000 + number for number in range(len(stages) + 1)]
    clear(0)
    ctypes.CDLL(str(compiled)).pretended_stream(90, 0)
    steps = CompiledSteps(calls, 1, plan, [SimpleNamespace(cuda_stream=handle) for handle in handles])
    base = None

    def expected(moment: int) -> list[str]:
        lines = []
        for operation, event, number in plan.moments[moment]:
            stream = 90 if number == -1 else handles[number]
            lines.append({0: f"record {base + event} {stream}", 1: f"wait {base + event} {stream}", 2: f"current {stream} 1", 3: "back 0 90"}[operation])
        return lines

    steps.begin(plan.begin(0), plan.copied(0))
    steps.run(plan.end(0))
    base = int(notes().decode().split("record ")[-1].split()[0]) - plan.done(0, len(stages) - 1)  # pretended events are numbered on
    steps.restore()
    for slot in range(plan.slots):
        for beginning in (plan.begin, plan.begin_small):
            clear(slot)
            steps.begin(beginning(slot), plan.copied(slot))
            lines = [f"host {base + plan.copied(slot)} 0"] if slot else []
            lines += expected(beginning(slot))
            for place in range(len(stages)):
                steps.run(plan.stage(slot, place))
                lines += expected(plan.stage(slot, place))
            end = plan.end_and_read(slot) if slot else plan.end(slot)
            steps.run(end)
            assert notes().decode().split("\n")[:-1] == lines + expected(end)
            steps.restore()
            assert ctypes.CDLL(str(compiled)).pretended_state() == 900  # the caller's stream and device
        clear(0)
        steps.read(plan.read(slot))
        assert notes().decode().split("\n")[:-1] == [*expected(plan.read(slot)), "back 0 90"]
    steps.begin(plan.begin(0), plan.copied(0))  # and a stage fails
    steps.restore()
    assert ctypes.CDLL(str(compiled)).pretended_state() == 900


@pytest.mark.parametrize("lag", [0, 1, 3, 8, 40])
@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("stages, slots", [([1, 1], 3), ([1, 2], 3), ([1, 2, 3], 4), ([1], 2)])
def test_no_batch_begins_before_its_slot_was_read(compiled, monkeypatch, stages, slots, small, lag):
    calls, plan, pretended = Library(compiled), Plan(stages, slots), ctypes.CDLL(str(compiled))
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    pretended.pretended_clear(0)
    pretended.pretended_stream(90, 1)
    base, before = pretended.pretended_events() + 1, pretended.pretended_looks()
    steps = CompiledSteps(calls, 1, plan, [SimpleNamespace(cuda_stream=1000 + number) for number in range(len(stages) + 1)])
    draw, batches, records = random.Random(lag), 300, []
    pretended.pretended_reach(pretended.pretended_records())
    try:
        for index in range(batches):
            slot = index % slots
            event = plan.done(slot, plan.first_done) if small else plan.copied(slot)
            pretended.pretended_reach(max(pretended.pretended_reached(), pretended.pretended_records() - draw.randint(0, lag)))
            steps.begin((plan.begin_small if small else plan.begin)(slot), event)
            if index >= slots:
                assert pretended.pretended_reached() >= records[index - slots]
            for place in range(small, len(stages)):
                steps.run(plan.stage(slot, place))
            steps.run(plan.end(slot))
            records.append(pretended.pretended_recorded(base + event))
    finally:
        pretended.pretended_reach(-1)
    looks = pretended.pretended_looks() - before
    assert looks < 2.2 * batches  # again after a wait
    if lag == 0:
        assert looks < 0.6 * batches if slots > 2 else looks < 0.7 * batches  # one for several batches


def test_the_library_copies_a_plain_loops_batches(compiled, monkeypatch):
    """On the caller's stream, with its device current, and waited for before the loop's body."""
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
    device = Pretended(compiled)
    device.copies = lambda: CompiledCopies(device.calls, 1, torch.device("cpu"))
    notes = device.pretended.pretended_notes
    kept, bodies = [], []
    shared = torch.zeros(4)

    def loader():
        for i in range(1, 5):
            yield shared.fill_(i), "label", i

    run = sluice.pipeline(lambda x, label, i: (x * 1, label, i), schedule="serial", device=device)
    device.pretended.pretended_stream(90, 0)
    device.pretended.pretended_clear(1)
    for x, label, i in run(loader()):
        kept.append((x, label, i))
        bodies.append(notes().decode())
        device.pretended.pretended_clear(1 if i < 4 else 0)
    assert [(x.tolist(), label, i) for x, label, i in kept] == [([float(i)] * 4, "label", i) for i in range(1, 5)]
    for body in bodies:
        done = [line.split() for line in body.splitlines()]
        assert [line[0] for line in done] == ["copy", "record", "back", "host"] and done[0][2] == done[1][2] == "90"
        assert done[1][1] == done[3][1] and done[2][2] == "90"
    assert device.pretended.pretended_state() % 10 == 0  # the caller's device

    with pytest.raises(RuntimeError, match="stage 'broken', batch 0"):
        list(sluice.pipeline(sluice.stage(lambda x: x.no_such, "broken"), schedule="serial", device=device)([torch.ones(2)]))
    source = torch.ones(2, requires_grad=True)  # PyTorch copies it, and a gradient comes back
    [result] = run([(source, "label", 1)])
    result[0].sum().backward()
    assert source.grad.tolist() == [1, 1]
    [result] = sluice.pipeline(lambda batch: batch["x"] * 1, schedule="serial", device=device)([{"x": torch.ones(2)}])
    assert result.tolist() == [1, 1]  # left to Python

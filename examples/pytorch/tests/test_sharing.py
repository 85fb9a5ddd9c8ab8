"""Stages that share what was not named: found in the first batches, and ordered; and results that a stage writes again."""

import copy
import warnings

import pytest
import torch
from graphing_device import GraphingDevice
from torch import nn
from watched_device import WatchedDevice

import sluice
from sluice.pipelines.trees import tensors_of


def device_of(device: str):
    return GraphingDevice() if device == "cpu" else device


def data(count: int = 24) -> list:
    generator = torch.Generator().manual_seed(1)
    return [(torch.rand(5, 6, generator=generator), torch.rand(5, generator=generator)) for _ in range(count)]


class Script:
    """Nothing is shared."""

    sentence = ""
    together = False

    def __init__(self, device: str) -> None:
        torch.manual_seed(0)
        self.device = device
        self.encoder, self.model = nn.Linear(6, 8).to(device), nn.Linear(8, 1).to(device)
        self.batch = 0
        self.make()

    def make(self) -> None:
        self.encoder.requires_grad_(False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)

    def encode(self, x, y):
        return self.encoder(x).relu(), y

    def train(self, x, y):
        self.optimizer.zero_grad()
        loss = (self.model(x).squeeze(1) - y).square().mean()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def stages(self):
        return [self.encode, lambda x, y: (x * 2, y), self.train]

    def results(self, batches):
        for batch in batches:
            for stage in self.stages():
                batch = stage(*batch)
            yield batch


class Frozen(Script):
    """Both use one model, which is not written, with an optimizer of all of it."""

    def make(self):
        super().make()
        self.optimizer = torch.optim.SGD([*self.encoder.parameters(), *self.model.parameters()], lr=0.05)

    def train(self, x, y):
        return super().train(x + self.encoder.weight.mean(), y)


class Learned(Script):
    sentence, together = "'train' writes encoder.weight, which 'encode' uses", True

    def make(self):
        self.optimizer = torch.optim.SGD([*self.encoder.parameters(), *self.model.parameters()], lr=0.05)


class Accumulated(Learned):
    """Weights are written in each fourth batch."""

    def train(self, x, y):
        loss = (self.model(x).squeeze(1) - y).square().mean()
        loss.backward()
        self.batch += 1
        if self.batch % 4 == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.detach()


class Average(Script):
    sentence, together = "'train' writes encoder.weight, which 'encode' uses", True

    def train(self, x, y):
        loss = super().train(x, y)
        with torch.no_grad():
            self.encoder.weight.mul_(0.99).add_(self.model.weight.mean(), alpha=0.01)
        return loss


class NowAndThen(Average):
    """A target network, which is written for the first time long after the first batches."""

    def train(self, x, y):
        self.batch += 1
        if self.batch % 9 == 0:
            with torch.no_grad():
                self.encoder.weight.copy_(self.encoder.weight.flip(0))
        return Script.train(self, x, y)


class ByAttribute(Script):
    """What the first stage made is freed by the first stage, and was read by another one."""

    sentence, together = "'encode' writes kept, which 'train' uses", True

    def encode(self, x, y):
        self.kept = x * 2
        return super().encode(x, y)

    def train(self, x, y):
        return super().train(x + self.kept.mean(), y)


class MovingMean(Script):
    """What the last stage made is another tensor each time, and read by the first stage for the next batch."""

    sentence, together = "'train' writes mean, which 'encode' uses", True

    def make(self):
        super().make()
        self.mean = torch.zeros(8, device=self.device)

    def encode(self, x, y):
        return (self.encoder(x) - self.mean).relu(), y

    def train(self, x, y):
        self.mean = self.mean * 0.9 + x.mean(0) * 0.1
        return super().train(x, y)


class Window(Script):
    """The same in a list."""

    sentence, together = "'train' writes means[", True

    def make(self):
        super().make()
        self.means = [torch.zeros(8, device=self.device)]

    def encode(self, x, y):
        return (self.encoder(x) - torch.stack(self.means[-3:]).mean(0)).relu(), y

    def train(self, x, y):
        self.means.append(x.mean(0))
        return super().train(x, y)


class Replaced(Script):
    """The same of a whole model."""

    sentence, together = "'train' writes encoder.weight, which 'encode' uses", True

    def train(self, x, y):
        self.encoder = copy.deepcopy(self.encoder)
        return super().train(x, y)


class ByName(Script):
    """Attributes are looked up by name, so that all of them might be used."""

    def encode(self, x, y):
        return getattr(self, "encod" + "er")(x).relu(), y


class Saved(Script):
    """Autograd orders a backward pass through another stage by itself."""

    def make(self):
        super().make()
        self.bias = torch.zeros(6, device=self.device, requires_grad=True)

    def encode(self, x, y):
        return self.encoder(x + self.bias).relu(), y


SCRIPTS = [Script, Frozen, Learned, Accumulated, Average, NowAndThen, ByAttribute, MovingMean, Window, Replaced, ByName, Saved]


@pytest.mark.filterwarnings("ignore:sluice.pipeline")
@pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
@pytest.mark.parametrize("kind", SCRIPTS)
def test_stages_that_share(device, schedule, kind):
    plain, piped = kind(device), kind(device)
    expected = [loss.item() for loss in plain.results([(x.to(device), y.to(device)) for x, y in data()])]
    run = sluice.pipeline(*piped.stages(), schedule=schedule, device=device_of(device))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [loss.item() for loss in run(data())] == expected, str(run.report())
    told = [str(warning.message) for warning in caught if "sluice.pipeline" in str(warning.message)]
    assert len(told) == (1 if kind.sentence else 0), told
    assert not kind.sentence or kind.sentence in told[0] and kind.sentence in str(run.report())
    first, middle, last = (running.stream for running in run.stages)
    assert (first is last) is kind.together and first is not middle


class Racing(torch.utils._python_dispatch.TorchDispatchMode):
    """Tells a device that watches accesses of those to one tensor."""

    def __init__(self, device: WatchedDevice, tensor: torch.Tensor) -> None:
        super().__init__()
        self.device, self.tensor = device, tensor

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for place, tensor in enumerate(t for t in args if isinstance(t, torch.Tensor)):
            if tensor.data_ptr() == self.tensor.data_ptr():
                self.device.access("weight", func._schema.is_mutable and place == 0, str(func))
        return result


@pytest.mark.filterwarnings("ignore:sluice.pipeline")
@pytest.mark.parametrize("kind", [Learned, Accumulated, Average, NowAndThen])
def test_every_access_to_what_is_shared_is_ordered(kind):
    device, script = WatchedDevice(), kind("cpu")
    run = sluice.pipeline(*script.stages(), device=device)
    with Racing(device, script.encoder.weight):
        for _ in run(data()):
            pass
    assert device.races == [] and len(device.accesses["weight"]) >= 24


def test_a_first_stage_that_writes_late_is_an_error():
    """The last stage of the batch before may be reading."""
    model = nn.Linear(6, 6).requires_grad_(False)
    batches = []

    def encode(x, y):
        batches.append(1)
        if len(batches) == 12:
            model.weight.mul_(0.5)
        return model(x), y

    run = sluice.pipeline(encode, lambda x, y: model(x), device=WatchedDevice())
    found = []
    with pytest.raises(sluice.StageError, match="'encode' writes model.weight, which '<lambda>' uses"):
        for result in run(data()):
            found.append(result)
    assert len(found) == 11


def test_named_sharing_is_no_warning(device):
    script = Learned(device)
    encode, double, train = script.stages()
    run = sluice.pipeline(sluice.stage(encode, shares=script), double, sluice.stage(train, shares=script), device=device_of(device))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(run(data()))) == 24


def test_a_warning_that_is_an_error_comes_once(device):
    """Stages are ordered by then."""
    script = Learned(device)
    run = sluice.pipeline(script.encode, script.train, device=device_of(device))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="expected sluice.stage"):
            list(run(data()))
        assert len(list(run(data()))) == 24 and len(run.shared) == 1
    with pytest.warns(UserWarning, match="expected sluice.stage") as told:
        list(sluice.pipeline(script.encode, script.train, device=device_of(device))(data()))
    assert told[0].filename == __file__
    assert run.stages[0].stream is run.stages[1].stream


def test_streams_of_the_caller_stay(device):
    if device == "cpu":
        pytest.skip("a CPU has none")
    script = Learned(device)
    own = torch.cuda.Stream()
    run = sluice.pipeline(script.encode, sluice.stage(script.train, stream=own), device=device)
    with pytest.warns(UserWarning, match="nothing orders"):
        list(run(data()))
    assert run.stages[1].stream == own


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
@pytest.mark.parametrize("kept", ["total", "weight", "part", "parameter", "constant"])
def test_results_that_the_next_batch_writes(device, schedule, kept):
    """A running total, returned as it is: results come late, and are those of their batch."""
    def stages(device: str):
        total, model = torch.zeros(3, device=device), nn.Linear(3, 3).to(device).requires_grad_(kept == "parameter")
        nn.init.ones_(model.weight)

        @torch.no_grad()
        def add(x):
            if kept == "constant":
                return {"kept": model.bias.fill_(1.0), "x": x}
            (model.weight if kept in ("weight", "parameter") else total).add_(x)
            return {"kept": {"total": total, "part": total[1:]}.get(kept, model.weight), "x": x}

        return [lambda x: x + 1, add]

    batches = [torch.full((3,), float(i)) for i in range(60)]
    first, second = stages(device)
    expected = [second(first(x.to(device)))["kept"].tolist() for x in batches]
    run = sluice.pipeline(*stages(device), schedule=schedule, device=device_of(device))
    assert [result["kept"].tolist() for result in run(batches)] == expected, str(run.report())


@pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
def test_gradients_and_weights_as_results(device, schedule):
    class Logged(Script):
        def train(self, x, y):
            self.optimizer.zero_grad(set_to_none=False)
            loss = (self.model(x).squeeze(1) - y).square().mean()
            loss.backward()
            self.optimizer.step()
            return loss.detach(), self.model.weight.grad, self.model.state_dict(), self.optimizer.state_dict()["state"]

    plain, piped = Logged(device), Logged(device)
    expected = [copy.deepcopy(result) for result in plain.results([(x.to(device), y.to(device)) for x, y in data(60)])]
    found = sluice.pipeline(*piped.stages(), schedule=schedule, device=device_of(device))(data(60))
    for result, other in zip(found, expected, strict=True):
        assert all(map(torch.equal, tensors_of(result), tensors_of(other)))


@pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
def test_a_stage_between_that_returns_what_it_keeps(device, schedule):
    def stages(device: str):
        total = torch.zeros(3, device=device)
        return [lambda x: (total.add_(x), x), lambda total, x: total * 2 + x]

    batches = [torch.full((3,), float(i)) for i in range(40)]
    first, second = stages(device)
    expected = [second(*first(x.to(device))).tolist() for x in batches]
    run = sluice.pipeline(*stages(device), schedule=schedule, device=device_of(device))
    assert [result.tolist() for result in run(batches)] == expected, str(run.report())

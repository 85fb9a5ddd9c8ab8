"""`automatic` beside plain loops whose body takes part in the training, and whose stages share what they write."""

import pytest
import torch
from guarded_training import COUNT, Training, choose_soon, data, graphing  # noqa: F401  (a fixture)

import sluice


def loops(device, body, stages=lambda t: (t.encode, t.train), make=None, count=COUNT):
    """The losses of a plain loop and of a pipeline, each with `body(training, loss, i)`; and the pipeline."""
    found = []
    for piped in (False, True):
        torch.manual_seed(5)
        training = (make or Training)(device)
        if piped:
            run = sluice.pipeline(*stages(training), schedule="automatic", device=graphing(device))
        losses = []
        for epoch in range(2):
            results = run(data(count)) if piped else training.loop(data(count, device))
            for i, loss in enumerate(results):
                losses.append(loss.item())
                body(training, loss, i)
        found.append(losses)
    return found[0], found[1], run


@pytest.mark.parametrize("name,body", [
    ("changes the stage.optimizer.param_groups[0]['lr']", lambda t, loss, i: t.optimizer.param_groups[0].update(lr=0.05 / (i + 1))),
    ("changes the stage.model.1.training", lambda t, loss, i: t.model.train(i % 2 == 0)),
    ("changes a tensor of shape", lambda t, loss, i: t.model[0].weight.data.mul_(0.99)),
    ("changes a tensor of shape", lambda t, loss, i: t.optimizer.zero_grad()),
])
def test_a_body_that_changes_what_stages_read(device, name, body):
    plain, piped, run = loops(device, body)
    assert piped == plain
    assert run.report().schedule == "serial" and f"automatic: serial, since the loop's body {name}" in str(run.report())


def test_a_body_that_steps(device):
    class Split(Training):
        def train(self, x, y):
            loss = (self.model(x).squeeze(1) - y).square().mean()
            return loss

    def body(training, loss, i):
        training.optimizer.zero_grad()
        loss.backward()
        training.optimizer.step()

    plain, piped, run = loops(device, body, make=Split)
    assert piped == plain and run.report().schedule == "serial"


def test_a_body_that_draws(device):
    class Dropping(Training):
        def __init__(self, device):
            super().__init__(device, dropout=0.5)

    plain, piped, run = loops(device, lambda t, loss, i: torch.rand(1, device=device), make=Dropping)
    assert piped == plain and "draws random numbers" in str(run.report())


def test_stages_that_share_weights(device):
    class Both(Training):
        def __init__(self, device):
            super().__init__(device)
            self.encoder.requires_grad_(True)
            self.optimizer = torch.optim.SGD([*self.encoder.parameters(), *self.model.parameters()], lr=0.01)

    plain, piped, run = loops(device, lambda t, loss, i: None, make=Both)
    assert piped == plain
    assert "automatic: serial, since 'encode' and 'train' use the same memory" in str(run.report())


def test_a_tensor_by_way_of_an_attribute(device):
    class Aside(Training):
        def encode(self, x, y):
            self.kept = x * 2
            return super().encode(x, y)

        def train(self, x, y):
            return super().train(x + self.kept.sum(), y)

    plain, piped, run = loops(device, lambda t, loss, i: None, make=Aside)
    assert piped == plain and "use the same memory" in str(run.report())


def test_a_body_that_only_looks(device):
    plain, piped, run = loops(device, lambda t, loss, i: (loss.item(), float(t.encoder.weight.sum())))
    assert piped == plain
    assert run.choice.chosen and len(run.choice.milliseconds) == 3


def test_stages_that_say_what_they_share(device):
    class Both(Training):
        def __init__(self, device):
            super().__init__(device)
            self.encoder.requires_grad_(True)
            self.optimizer = torch.optim.SGD([*self.encoder.parameters(), *self.model.parameters()], lr=0.01)

    plain, piped, run = loops(device, lambda t, loss, i: None, make=Both, stages=lambda t: (
        sluice.stage(t.encode, shares=t), sluice.stage(t.train, shares=t)))
    assert piped == plain and len(run.choice.milliseconds) == 3


class TestBodiesThatOnlyRead:
    """Weights are those of other batches where results come late."""

    @staticmethod
    def evaluate(training, loss, i):
        if i % 10 == 0:
            training.model.eval()
            with torch.no_grad():
                training.seen.append(training.model(torch.ones(4, 8, device=loss.device)).sum().item())
            training.model.train()

    @staticmethod
    def measure(training, loss, i):
        training.seen.append(training.model[0].weight.norm().item())

    @staticmethod
    def keep(training, loss, i):
        if i in (0, 30):
            training.seen.append(torch.cat([v.flatten().float() for v in training.model.state_dict().values()]).tolist())

    @pytest.mark.parametrize("name", ["evaluate", "measure", "keep"])
    def test_what_stages_write(self, device, name):
        made = []

        class Seen(Training):
            def __init__(self, device):
                super().__init__(device)
                self.seen = []
                made.append(self)

        plain, piped, run = loops(device, getattr(self, name), make=Seen)
        assert piped == plain and made[0].seen == made[1].seen
        assert run.report().schedule == "serial" and "automatic: serial, since the loop's body uses a tensor of shape" in str(run.report())

    def test_results_and_what_is_its_own(self, device):
        total, other = torch.zeros((), device=device), torch.nn.Linear(3, 3).to(device)

        def body(training, loss, i):
            total.add_(loss)
            other(torch.ones(2, 3, device=device)).sum().backward()

        plain, piped, run = loops(device, body)
        assert piped == plain and not run.choice.reason

    def test_an_end_within(self, device):
        """A loop that ends, or another one that goes on meanwhile, leaves nothing behind that follows operations."""
        from torch.utils._python_dispatch import _get_current_dispatch_mode as mode
        runs = [sluice.pipeline(lambda x, y: x + y.sum(), schedule="automatic", device=graphing(device)) for _ in range(2)]
        for _ in zip(runs[0](data(9)), runs[1](data(5))):
            pass
        assert mode() is None
        for _ in runs[0](data(9)):
            break
        assert mode() is None
        with pytest.raises(KeyError):
            for _ in runs[1](data(9)):
                raise KeyError
        assert mode() is None


def test_a_loader_that_refills_its_memory(device):
    """The other schedules refuse it, since a copy may be under way."""
    memory = torch.zeros(2)

    def loader():
        for i in range(COUNT):
            yield memory.fill_(i)

    run = sluice.pipeline(lambda x: x * 2, schedule="automatic", device=graphing(device))
    assert [x[0].item() for x in run(loader())] == [2.0 * i for i in range(COUNT)]
    assert "automatic: serial, since the loader refills the memory of a batch" in str(run.report())

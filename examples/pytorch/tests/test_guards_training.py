"""Graphs beside plain loops, where something changes that a stage reads on the host: optimizers and models."""

import functools
import tempfile

import pytest
import torch
from guarded_training import (  # noqa: F401  (a fixture)
    COUNT, SCHEDULES, Training, beside_a_plain_loop, choose_soon, data, graphing, replays, smaller, step_and_decay)

import sluice

pytestmark = pytest.mark.usefixtures("by_library")


@pytest.mark.parametrize("schedule", SCHEDULES)
class TestOptimizers:
    def test_a_rate_that_changes_in_each_batch(self, device, schedule):
        def make():
            training = Training(device)
            training.scheduler = torch.optim.lr_scheduler.ExponentialLR(training.optimizer, 0.99)
            return training

        run = beside_a_plain_loop(device, schedule, make, 2)
        assert replays(run) == 0 and "it changes" in run.report().refusals["train"]

    def test_a_hook_of_the_optimizer(self, device, schedule):
        def between(training, epoch):
            training.optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: [
                weight.grad.mul_(0.5) for group in optimizer.param_groups for weight in group["params"]] and None)

        run = beside_a_plain_loop(device, schedule, lambda: Training(device), 3, between)
        assert schedule == "automatic" or replays(run) > COUNT

    def test_a_rate_that_changes_now_and_then(self, device, schedule):
        def make():
            training = Training(device)
            training.scheduler = torch.optim.lr_scheduler.StepLR(training.optimizer, 40, 0.5)
            return training

        beside_a_plain_loop(device, schedule, make, 2)

    def test_a_rate_that_changes_between_epochs(self, device, schedule):
        def between(training, epoch):
            training.optimizer.param_groups[0]["lr"] *= 0.5

        run = beside_a_plain_loop(device, schedule, lambda: Training(device, momentum=0.9), 4, between)
        if schedule == "graphed":
            assert replays(run) > 2 * COUNT and "['lr']" in str(run.report().changes["train"])

    @pytest.mark.parametrize("assign", [False, True])
    def test_states_that_are_loaded_between_epochs(self, device, schedule, assign):
        def between(training, epoch):
            if epoch == 0:
                training.saved = [{key: value.clone() for key, value in training.model.state_dict().items()},
                                  training.optimizer.state_dict()]
                training.saved[1]["state"] = {key: {name: value.clone() for name, value in state.items()}
                                              for key, state in training.saved[1]["state"].items()}
                return
            training.model.load_state_dict({key: value.clone() for key, value in training.saved[0].items()}, assign=assign)
            if assign:
                training.optimizer.param_groups[0]["params"] = list(training.model.parameters())
                training.optimizer.state.clear()
            else:
                training.optimizer.load_state_dict(training.saved[1])

        run = beside_a_plain_loop(device, schedule, lambda: Training(device, momentum=0.9), 4, between)
        if schedule == "graphed":
            assert replays(run) > 2 * COUNT

    @pytest.mark.parametrize("kind,options", [
        (torch.optim.Adam, {}), (torch.optim.AdamW, {"foreach": False}), (torch.optim.Adagrad, {}),
        (torch.optim.RMSprop, {"momentum": 0.5}), (torch.optim.SGD, {"nesterov": True, "momentum": 0.9}),
        (torch.optim.SGD, {"foreach": True, "momentum": 0.9})])
    def test_optimizers(self, device, schedule, kind, options):
        run = beside_a_plain_loop(device, schedule, lambda: Training(device, kind, **options), 2)
        if kind is torch.optim.Adam:
            assert replays(run) == 0 and "expected capturable=True" in run.report().refusals["train"]

    def test_a_rate_in_a_tensor(self, device, schedule):
        """It may change in each batch: only its memory is captured."""
        def make():
            training = Training(device, lr=torch.tensor(0.05, device=device))
            training.train = functools.partial(step_and_decay, training)
            return training

        def make_adam():
            training = Training(device, torch.optim.Adam, lr=torch.tensor(0.05, device=device), capturable=True)
            training.train = functools.partial(step_and_decay, training)
            return training

        run = beside_a_plain_loop(device, schedule, make, 2)  # reads the rate on the host
        assert replays(run, "partial") == 0
        if schedule == "graphed" and device == "cuda":
            run = beside_a_plain_loop(device, schedule, make_adam, 3)
            assert replays(run, "partial") > 2 * COUNT, str(run.report())

    def test_an_optimizer_that_is_made_anew(self, device, schedule):
        def between(training, epoch):
            training.optimizer = torch.optim.SGD(training.model.parameters(), lr=0.01 * (epoch + 1), momentum=0.5)

        beside_a_plain_loop(device, schedule, lambda: Training(device), 3, between)

    def test_accumulation(self, device, schedule):
        class Accumulating(Training):
            batches = 0

            def train(self, x, y):
                loss = (self.model(x).squeeze(1) - y).square().mean()
                loss.backward()
                self.batches += 1
                if self.batches % 4 == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                return loss.detach()

        run = beside_a_plain_loop(device, schedule, lambda: Accumulating(device), 2)
        assert replays(run) == 0

    def test_gradients_that_stay_in_place(self, device, schedule):
        class Keeping(Training):
            def train(self, x, y):
                self.optimizer.zero_grad(set_to_none=False)
                loss = (self.model(x).squeeze(1) - y).square().mean()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 0.1)
                self.optimizer.step()
                return loss.detach()

        def between(training, epoch):
            training.optimizer.zero_grad(set_to_none=True)

        run = beside_a_plain_loop(device, schedule, lambda: Keeping(device), 3, between)
        if schedule == "graphed":
            assert replays(run) > COUNT

    def test_a_step_with_the_gradients_of_the_batch_before(self, device, schedule):
        class Late(Training):
            def train(self, x, y):
                self.optimizer.step()
                self.optimizer.zero_grad()
                loss = (self.model(x).squeeze(1) - y).square().mean()
                loss.backward()
                return loss.detach()

        beside_a_plain_loop(device, schedule, lambda: Late(device), 2)

    def test_a_step_in_a_stage_of_its_own(self, device, schedule):
        class Apart(Training):
            def backward(self, x, y):
                loss = (self.model(x).squeeze(1) - y).square().mean()
                loss.backward()
                return loss.detach()

            def step(self, loss):
                self.optimizer.step()
                self.optimizer.zero_grad()
                return loss * 1

            def loop(self, batches):
                for batch in batches:
                    yield self.step(self.backward(*self.encode(*batch)))

        if device == "cuda" and schedule == "graphed":
            pytest.skip("stages that share gradients race; expected `shares`, or `serial`")
        beside_a_plain_loop(device, schedule, lambda: Apart(device), 2, stages=lambda t: (t.encode, t.backward, t.step))

    @pytest.mark.parametrize("unscale", [False, True])
    def test_a_scaler(self, device, schedule, unscale):
        class Scaled(Training):
            def __init__(self):
                super().__init__(device)
                self.scaler = torch.amp.GradScaler(device, growth_interval=20)

            def train(self, x, y):
                self.optimizer.zero_grad()
                loss = (self.model(x).squeeze(1) - y).square().mean()
                self.scaler.scale(loss).backward()
                if unscale:
                    self.scaler.unscale_(self.optimizer)
                    torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.scaler.step(self.optimizer)
                self.scaler.update()
                return loss.detach()

        run = beside_a_plain_loop(device, schedule, Scaled, 2)
        assert "GradScaler" in run.report().refusals["train"]


@pytest.mark.parametrize("schedule", SCHEDULES)
class TestModels:
    def test_training_and_evaluation(self, device, schedule):
        def between(training, epoch):
            training.model.train(epoch % 2 == 1)

        beside_a_plain_loop(device, schedule, lambda: Training(device, lr=0.002), 4, between)

    def test_dropout(self, device, schedule):
        run = beside_a_plain_loop(device, schedule, lambda: Training(device, dropout=0.5), 3,
                                  lambda training, epoch: setattr(training.model[2], "p", 0.3))
        if schedule == "graphed":
            assert replays(run) > COUNT

    def test_checkpointed_dropout(self, device, schedule):
        class Checkpointed(Training):
            def train(self, x, y):
                self.optimizer.zero_grad(set_to_none=True)
                out = torch.utils.checkpoint.checkpoint(self.model, x.requires_grad_(False), use_reentrant=False)
                loss = (out.squeeze(1) - y).square().mean()
                loss.backward()
                self.optimizer.step()
                return loss.detach()

        beside_a_plain_loop(device, schedule, lambda: Checkpointed(device, dropout=0.5), 2)

    def test_weights_that_are_frozen_or_replaced(self, device, schedule):
        def between(training, epoch):
            if epoch == 0:
                training.model[0].requires_grad_(False)
            elif epoch == 1:
                training.encoder.weight.data = training.encoder.weight.data * 2
            else:
                training.encoder = torch.nn.Linear(6, 8).to(device).requires_grad_(False)
                torch.manual_seed(0)

        torch.manual_seed(0)
        plain, piped = Training(device), Training(device)
        with torch.no_grad():
            run = sluice.pipeline(piped.encode, schedule=schedule, device=graphing(device))
            for epoch in range(4):
                expected = [plain.encode(*batch)[0].tolist() for batch in data(COUNT, device)]
                assert [x.tolist() for x, _ in run(data())] == expected
                for training in (plain, piped):
                    torch.manual_seed(9)
                    between(training, epoch)

    def test_a_hook_that_is_added(self, device, schedule):
        def between(training, epoch):
            training.model[0].register_forward_hook(lambda module, given, out: out * 0.5)

        beside_a_plain_loop(device, schedule, lambda: Training(device), 3, between)

    def test_compiled(self, device, schedule):
        """torch.compile's code is not followed operation by operation, but what it reads is guarded."""
        class Compiled(Training):
            def __init__(self):
                super().__init__(device, momentum=0.9)
                self.factor = 1.0
                self.inner = torch.compile(self.loss, backend="aot_eager")

            def loss(self, x, y):
                return (self.model(x).squeeze(1) - y).square().mean() * self.factor

            def train(self, x, y):
                self.optimizer.zero_grad(set_to_none=True)
                loss = self.inner(x, y)
                loss.backward()
                self.optimizer.step()
                return loss.detach()

        def between(training, epoch):
            training.factor = 0.5 + epoch

        run = beside_a_plain_loop(device, schedule, Compiled, 3, between)
        if schedule == "graphed":
            assert replays(run) > COUNT, str(run.report())

    def test_a_wrapper_of_several_processes(self, device, schedule):
        import torch.distributed as dist
        with tempfile.TemporaryDirectory() as folder:
            dist.init_process_group("gloo" if device == "cpu" else "nccl", init_method=f"file://{folder}/store", rank=0,
                                    world_size=1)
            try:
                class Wrapped(Training):
                    def __init__(self):
                        super().__init__(device, lr=0.01)
                        self.whole, self.model = self.model, torch.nn.parallel.DistributedDataParallel(self.model)

                run = beside_a_plain_loop(device, schedule, Wrapped, 1)
                assert "DistributedDataParallel" in run.report().refusals["train"]
            finally:
                dist.destroy_process_group()

    def test_a_hook_of_a_weight(self, device, schedule):
        def between(training, epoch):
            if epoch == 0:
                training.model[0].weight.register_hook(lambda gradient: gradient * 0.5)
            elif epoch == 1:
                training.model[3].weight.register_post_accumulate_grad_hook(smaller)

        run = beside_a_plain_loop(device, schedule, lambda: Training(device), 3, between)
        if schedule == "graphed":
            assert replays(run) > 2 * COUNT, str(run.report())

    def test_an_encoder_that_learns(self, device, schedule):
        class Both(Training):
            def __init__(self):
                super().__init__(device)
                self.encoder.requires_grad_(True)
                self.optimizer = torch.optim.SGD([*self.encoder.parameters(), *self.model.parameters()], lr=0.05)

        if device == "cuda" and schedule == "graphed":
            pytest.skip("a stage reads weights that another writes; expected `shares`, or `serial`")
        run = beside_a_plain_loop(device, schedule, Both, 2)
        if schedule == "automatic":
            assert run.report().schedule == "serial"
            return
        assert "autograd's history" in run.report().refusals["encode"]
        assert "autograd's history" in run.report().refusals["train"]

    def test_autocast_around_the_loop(self, device, schedule):
        plain, piped = Training(device), Training(device)
        run = sluice.pipeline(piped.encode, lambda x, y: piped.model(x).detach(), schedule=schedule, device=graphing(device))
        for epoch in range(3):
            with torch.autocast(device, torch.bfloat16):
                expected = [plain.model(plain.encode(*batch)[0]).tolist() for batch in data(60, device)]
                found = [out.tolist() for out in run(data(60))]
            assert found == expected, epoch
            for training in (plain, piped):
                with torch.no_grad():
                    training.model[0].weight.mul_(2)
        with torch.no_grad():
            assert [out.tolist() for out in run(data(60))] == [plain.model(plain.encode(*b)[0]).tolist() for b in data(60, device)]

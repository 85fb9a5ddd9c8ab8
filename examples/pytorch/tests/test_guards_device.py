"""Graphs beside plain loops on a GPU: what only it shows."""

import gc

import pytest
import torch
from guarded_training import COUNT, Training, beside_a_plain_loop, choose_soon, data, needs_cuda, replays  # noqa: F401  (a fixture)

import sluice


@needs_cuda
class TestOnTheDevice:
    @pytest.mark.parametrize("bound", [0, 32 << 20])
    def test_results_of_a_slot_among_graphs_that_share_memory(self, bound, monkeypatch):
        """The second stage is slow, so that the first works on the next batches meanwhile."""
        from sluice.pipelines import forms
        monkeypatch.setattr(forms, "MOST_COPIED", bound)

        def first(x, y):
            z = x * 2
            for _ in range(4):
                z = z + x
            return z, y, (z - x).sum()

        def second(z, y, total):
            torch.cuda._sleep(300_000)
            return z.sum(), y, total

        run = sluice.pipeline(first, second, schedule="graphed", slots=4)
        for _ in range(2):
            found = [(a.item(), b.item(), c.item()) for a, b, c in run((torch.full((1 << 16,), float(i)), torch.tensor(i))
                                                                       for i in range(COUNT))]
            assert found == [(6.0 * i * (1 << 16), i, 5.0 * i * (1 << 16)) for i in range(COUNT)]
        assert run.stages[0].graphs.replays > COUNT

    @pytest.mark.parametrize("schedule", ["overlapped", "graphed"])
    def test_random_numbers_of_two_stages(self, schedule):
        torch.cuda.manual_seed(5)
        expected = [(x + torch.rand(64, device="cuda")).tolist() + torch.rand(64, device="cuda").tolist()
                    for x in [torch.zeros(64, device="cuda")] * COUNT]
        torch.cuda.manual_seed(5)
        run = sluice.pipeline(lambda x: x + torch.rand(64, device="cuda"), lambda x: torch.cat([x, torch.rand(64, device="cuda")]),
                              schedule=schedule)
        found = [x.tolist() for x in run([torch.zeros(64)] * COUNT)]
        assert found == expected
        if schedule == "graphed":
            assert min(run.stages[i].graphs.replays for i in (0, 1)) > COUNT / 2
        after = torch.rand(3, device="cuda")
        assert not any(after.tolist() == x[64:67] for x in found)

    def test_a_generator_of_the_callers(self):
        own = torch.Generator("cuda").manual_seed(3)
        expected = [torch.rand(8, device="cuda", generator=own).tolist() for _ in range(2 * COUNT)]
        own.manual_seed(3)
        run = sluice.pipeline(lambda x: x + torch.rand(8, device="cuda", generator=own), lambda x: x + 0, schedule="graphed")
        found = [x.tolist() for _ in range(2) for x in run([torch.zeros(8)] * COUNT)]
        assert found == expected
        assert run.stages[0].graphs.replays > COUNT, str(run.report())

    def test_a_seed_that_is_set_between_epochs(self):
        run = sluice.pipeline(lambda x: x + torch.rand(8, device="cuda"), schedule="graphed")
        first = None
        for _ in range(3):
            torch.manual_seed(11)
            found = [x.tolist() for x in run([torch.zeros(8)] * 40)]
            assert first is None or found == first
            first = found

    @pytest.mark.parametrize("schedule", ["serial", "automatic"])
    def test_a_loader_that_refills_pinned_memory(self, schedule):
        """The copy of each batch waits for the work on the one before."""
        memory = torch.zeros(1 << 16, pin_memory=True)

        def loader():
            for i in range(COUNT):
                yield memory.fill_(i)

        def slow(x):
            torch.cuda._sleep(1_000_000)
            return x * 2

        run = sluice.pipeline(slow, schedule=schedule)
        assert [(x[0].item(), x[-1].item()) for x in [*run(loader())]] == [(2.0 * i, 2.0 * i) for i in range(COUNT)]

    @pytest.mark.parametrize("apart", [None, False])
    def test_a_number_on_the_host_from_stage_to_stage(self, apart):
        factor = torch.tensor(0.0)
        run = sluice.pipeline(sluice.stage(lambda x: (x, factor), "first", graph=apart), lambda x, by: x * by, schedule="graphed")
        for epoch in range(3):
            factor.fill_(epoch)
            assert [x[0].item() for x in run([torch.ones(2)] * COUNT)] == [float(epoch)] * COUNT, str(run.report())

    def test_a_capturable_adam_is_captured(self):
        def between(training, epoch):
            training.optimizer.param_groups[0]["weight_decay"] = 0.01

        run = beside_a_plain_loop("cuda", "graphed", lambda: Training("cuda", torch.optim.Adam, capturable=True), 3, between)
        assert replays(run) > 2 * COUNT, str(run.report())

    def test_a_capture_that_fails_on_the_device(self):
        """The host reads what the watched run did not show: it reads only while a capture is under way."""
        plain, piped = (Training("cuda", dropout=0.3, momentum=0.9) for _ in range(2))
        right = piped.train

        def train(x, y):
            loss = right(x, y)
            if torch.cuda.is_current_stream_capturing():
                torch.cuda.synchronize()
            return loss

        run = sluice.pipeline(piped.encode, train, schedule="graphed")
        torch.manual_seed(1)
        expected = [loss.item() for loss in plain.loop(data(60, "cuda"))]
        torch.manual_seed(1)
        assert [loss.item() for loss in run(data(60))] == expected
        assert "captur" in run.report().refusals["train"]
        assert torch.rand(3, device="cuda").shape == (3,)

    def test_memory_after_failures_and_dropped_pipelines(self):
        weight = torch.rand(1024, 1024, device="cuda")

        def fails(x):
            y = (x @ weight).relu() @ weight
            if torch.cuda.is_current_stream_capturing():
                torch.cuda.synchronize()
            return y.sum()

        def once(second):
            run = sluice.pipeline(lambda x: x @ weight, second, schedule="graphed")
            return [float(x) for x in run([torch.rand(512, 1024)] * 20)]

        def memory():
            gc.collect()
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            return torch.cuda.memory_reserved(), torch.cuda.mem_get_info()[0]

        for second in (fails, lambda x: (x @ weight).sum()):
            found = []
            for _ in range(5):
                for _ in range(25):
                    once(second)
                found.append(memory())
            reserved, free = zip(*found)
            assert max(reserved[1:]) <= reserved[1], found
            # The driver takes room for graphs by 64 MB at a time, and not with each pipeline.
            assert sum(later < earlier for earlier, later in zip(free[1:], free[2:])) < 2, found


@needs_cuda
class TestRecurrentNetworks:
    @staticmethod
    def losses(schedule, dropout, lengths):
        torch.manual_seed(3)
        lstm, head = torch.nn.LSTM(6, 16, 2, batch_first=True, dropout=dropout).cuda(), torch.nn.Linear(16, 5).cuda()
        optimizer = torch.optim.SGD([*lstm.parameters(), *head.parameters()], lr=0.1)

        def noise(x, y):
            return x + torch.randn(x.shape, device="cuda") * 0.1, y

        def train(x, y):
            loss = torch.nn.functional.cross_entropy(head(lstm(x)[0][:, -1]), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        g = torch.Generator().manual_seed(0)
        loader = [(torch.randn(8, lengths[i % len(lengths)], 6, generator=g), torch.randint(5, (8,), generator=g)) for i in range(40)]
        if schedule == "plain":
            return [train(*noise(x.cuda(), y.cuda())).item() for _ in range(2) for x, y in loader]
        run = sluice.pipeline(noise, train, schedule=schedule)
        found = [loss.item() for _ in range(2) for loss in run(loader)]
        # Of each form of batches some are worked on eagerly, and some are compared.
        assert schedule != "graphed" or run.report().replays["noise"] > (40 if len(lengths) == 1 else 0)
        return found

    @pytest.mark.parametrize("schedule", ["serial", "overlapped", "graphed", "automatic"])
    @pytest.mark.parametrize("dropout", [0.0, 0.4])
    @pytest.mark.parametrize("lengths", [[5], [5, 3]])
    def test_their_dropout_and_their_lengths(self, schedule, dropout, lengths):
        """A replay that draws moves PyTorch's generator on, and must not begin cuDNN's dropout anew."""
        assert self.losses(schedule, dropout, lengths) == self.losses("plain", dropout, lengths)

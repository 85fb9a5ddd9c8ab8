"""Pipelines: which stages become graphs, and when. Real graphs are in test_pipeline.py."""

import gc
import time
import types

import pytest
import torch
from graphing_device import GraphingDevice

import sluice

pytestmark = pytest.mark.usefixtures("by_library")


class TestGraphs:
    """What becomes a graph, on a device of the CPU that replays by calling again."""

    @staticmethod
    def chain(x: torch.Tensor, label: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, label  # which passes through

    @staticmethod
    def end(x: torch.Tensor, label: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, label + 0

    @staticmethod
    def data(count: int, last: int = 3) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [(torch.full((last if i == count - 1 else 3,), float(i)), torch.tensor(i)) for i in range(count)]

    def check(self, run: sluice.Pipeline, count: int, last: int = 3) -> None:
        results = list(run(self.data(count, last)))
        assert [label.item() for _, label in results] == list(range(count))
        for i, (x, _) in enumerate(results):
            assert x.tolist() == [2.0 * i + 1] * (last if i == count - 1 else 3)

    @pytest.mark.parametrize("slots", [2, 3, 4])
    def test_each_slot_is_captured_once(self, slots, by_library):
        device = GraphingDevice()
        run = sluice.pipeline(self.chain, self.end, schedule="graphed", slots=slots, device=device)
        for _ in range(3):
            self.check(run, 40, last=2)
        report = run.report()
        assert device.captures == 2 * slots and report.refusals == {}
        # The first laps, and the short last batch of each epoch, ran eagerly.
        assert all(count <= 4 * slots + 3 for count in report.eager.values())
        assert all(report.replays[name] + report.eager[name] == 120 for name in ("chain", "end"))
        assert not by_library or sum(by_library) > 80

    def test_an_eager_stage_among_graphs(self):
        device = GraphingDevice()
        run = sluice.pipeline(self.chain, sluice.stage(lambda x, label: (x.clone(), label), "between", graph=False), self.end,
                              schedule="graphed", device=device)
        for _ in range(2):
            self.check(run, 60, last=1)
        report = run.report()
        assert report.replays["between"] == 0 and report.eager["between"] == 120
        assert report.replays["chain"] > 80 and report.replays["end"] > 80

    def test_a_capture_that_fails(self):
        class Refusing(GraphingDevice):
            seen = 0

            def capture(self, stream, work, memory, generators):
                self.seen += stream is run.stages[0].stream
                if self.seen == 2 and stream is run.stages[0].stream:
                    raise RuntimeError("operation not permitted\nwhen stream is capturing")
                return super().capture(stream, work, memory, generators)

        run = sluice.pipeline(self.chain, self.end, schedule="graphed", device=Refusing())
        self.check(run, 40)
        report = run.report()
        assert report.refusals == {"chain": "operation not permitted when stream is capturing"}
        assert "chain was not captured: operation not permitted" in str(report)

    def test_what_passes_through_a_stage_whose_graph_is_gone(self):
        """A later stage's graph may hold it, as that of the batch."""
        made = types.SimpleNamespace(shift=0)

        class Refusing(GraphingDevice):
            seen = 0

            def capture(self, stream, work, memory, generators):
                self.seen += stream is run.stages[0].stream
                if self.seen == 2 and stream is run.stages[0].stream:
                    raise RuntimeError("there are enough graphs")
                return super().capture(stream, work, memory, generators)

        run = sluice.pipeline(lambda x: (x, x * 2)[0], sluice.stage(lambda x: x + made.shift, "end"), schedule="graphed", device=Refusing())
        for made.shift in (1, 2, 3):
            results = list(run([torch.full((3,), float(i)) for i in range(60)]))
            assert [x[0].item() for x in results] == [float(i) + made.shift for i in range(60)]
        report = run.report()
        assert report.refusals == {"<lambda>": "there are enough graphs"} and report.changes["end"] == {"made.shift": 2}
        assert report.replays["end"] > 90

    def test_a_graph_for_another_place_than_the_last(self):
        """It is captured while there is one for tensors elsewhere, and may hold what passes through to it."""
        def first(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return y if int(x[0].item()) // 3 in (10, 12, 13) else x  # it stays eager

        run = sluice.pipeline(first, sluice.stage(lambda x: x + 1, "end"), schedule="graphed", device=GraphingDevice())
        results = list(run([(torch.full((3,), float(i)), torch.full((3,), -float(i))) for i in range(90)]))
        assert [x[0].item() for x in results] == [(-i if i // 3 in (10, 12, 13) else i) + 1 for i in range(90)]
        report = run.report()
        assert "end" not in report.refusals and report.replays["end"] > 50

    def test_garbage_that_goes_while_a_graph_is_captured(self):
        """It held memory of the slot, and the graph holds that from then on."""
        class Collecting(GraphingDevice):
            def capture(self, stream, work, memory, generators):
                gc.set_threshold(1)
                kept = [[] for _ in range(100)]
                gc.set_threshold(1 << 30)
                del kept
                return super().capture(stream, work, memory, generators)

        def eager(x: torch.Tensor) -> torch.Tensor:
            circle: list = [x.detach(), x.sum().item()]
            circle.append(circle)
            return x

        threshold = gc.get_threshold()
        gc.set_threshold(1 << 30)
        try:
            run = sluice.pipeline(eager, lambda x: x + 1, schedule="graphed", device=Collecting())
            results = list(run([torch.full((3,), float(i)) for i in range(60)]))
            report = run.report()
        finally:
            gc.set_threshold(*threshold)
        assert [x.tolist() for x in results] == [[i + 1.0] * 3 for i in range(60)]
        assert list(report.refusals) == ["eager"] and report.replays["<lambda>"] > 30

    def test_automatic_tries_all_three(self):
        run = sluice.pipeline(self.chain, self.end, schedule="automatic", device=GraphingDevice())
        self.check(run, 200)
        assert "a batch: serial" in str(run.report()) and "graphed" in str(run.report())
        assert run.choice.chosen

    def test_automatic_leaves_out_what_is_between_two_iterations(self):
        run = sluice.pipeline(self.chain, self.end, schedule="automatic", device=GraphingDevice())
        for count in (20, 30, 40, 50):  # ends while each schedule is being timed
            self.check(run, count)
            time.sleep(0.5)
        assert run.choice.chosen and max(run.choice.milliseconds.values()) < 10  # 500 ms in 24 batches are 21 ms each

    def test_automatic_begins_again_after_an_error(self):
        run = sluice.pipeline(self.chain, self.end, schedule="automatic", device=GraphingDevice())
        for _ in run(self.data(30)):
            break
        assert run.choice.tried == 0 and not run.choice.chosen
        self.check(run, 200)
        assert run.choice.chosen

    def test_a_number_that_changes_is_not_captured(self):
        run = sluice.pipeline(lambda x, factor: x * factor, schedule="graphed", device=GraphingDevice())
        results = [x[0].item() for x in run([(torch.ones(2), float(i)) for i in range(30)])]
        assert results == [float(i) for i in range(30)]

    def test_batches_of_several_shapes_are_replayed(self):
        """They lie in the same memory, whatever their shapes: sequences of several lengths, images of several sizes."""
        run = sluice.pipeline(lambda x, y: (x.sum(), y * 2), schedule="graphed", device=GraphingDevice())
        shapes = [(3, 11, 2), (2, 4, 5), (3, 17, 2), (30,)]
        for _ in range(2):
            data = [(torch.full(shapes[i % 4], float(i)), torch.tensor(i)) for i in range(100)]
            assert [(x.item(), y.item()) for x, y in run(data)] == [(x.sum().item(), 2 * i) for i, (x, _) in enumerate(data)]
        assert run.report().replays["<lambda>"] > 140, str(run.report())
        # The first batch's memory, and larger ones for those that do not fit; a label.
        assert run.intake.allocations <= 3 * 2 + 2

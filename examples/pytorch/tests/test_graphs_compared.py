"""A graph's first replays beside eager runs, where the stage itself gives other bits now and then."""

import random

import pytest
import torch
from graphing_device import GraphingDevice

import sluice
from sluice.pipelines import graphs


@pytest.mark.parametrize("one_in", [2, 3, 8])
def test_a_stage_that_adds_up_in_no_fixed_order_is_not_refused(one_in, monkeypatch):
    """Its bits are others now and then, by its Python code as well as in a graph."""
    draws = random.Random()
    monkeypatch.setattr(graphs, "same", lambda first, second: draws.random() >= 1 / one_in)
    for seed in range(20):
        draws.seed(seed)
        run = sluice.pipeline(lambda x: x * 2, schedule="graphed", device=GraphingDevice())
        assert [x[0].item() for x in run([torch.full((2,), float(i)) for i in range(40)])] == [2 * i for i in range(40)]
        assert not run.report().refusals and run.report().replays["<lambda>"] > 20


@pytest.mark.parametrize("by, is_refused", [(1e-6, False), (1e-2, True)])
def test_a_graph_that_adds_up_otherwise_beside_other_work_is_not_refused(by, is_refused):
    """Its bits are others once, while its Python code's are the same each time."""
    class Once(GraphingDevice):
        made = 0

        def capture(self, stream, work, memory, generators):
            graph, outputs = super().capture(stream, work, memory, generators)
            right, factors = graph.replay, iter([] if self.made else [1 + by])
            self.made += 1
            graph.replay = lambda: (right(), outputs.mul_(next(factors, 1.0)))
            return graph, outputs

    run = sluice.pipeline(lambda x: x * 2, schedule="graphed", device=Once())
    results = [x[0].item() for x in run([torch.full((2,), float(i)) for i in range(40)])]
    assert results == [2 * i for i in range(40)]
    assert bool(run.report().refusals) == is_refused and (run.report().replays["<lambda>"] > 20) != is_refused

"""What a program puts onto tensors and lists as attributes goes from stage to stage with them, by every schedule."""

import collections

import pytest
import torch
from guarded_training import graphing

import sluice

SCHEDULES = ["serial", "overlapped", "graphed", "automatic"]
COUNT = 40


class Rows(list):
    pass


class Pair(tuple):
    pass


def marked(value, factor):
    value.factor = factor
    return value


CONTAINERS = {"list": lambda x, factor: marked(Rows([x]), factor), "tuple": lambda x, factor: marked(Pair([x]), factor),
              "UserList": lambda x, factor: marked(collections.UserList([x]), factor)}


def epochs(run, batches):
    return [[x.tolist() for x in run(batches)] for _ in range(2)]


@pytest.mark.parametrize("schedule", SCHEDULES)
class TestAttributes:
    def test_of_tensors(self, device, schedule):
        count = iter(range(10 ** 6))

        def encode(x):
            return marked(x * 2, next(count) % 3 + 1.0)

        run = sluice.pipeline(encode, lambda x: x * getattr(x, "factor", 100.0), schedule=schedule, device=graphing(device))
        expected = [[[2.0 * i * ((n * COUNT + i) % 3 + 1.0)] for i in range(COUNT)] for n in range(2)]
        assert epochs(run, [torch.full((1,), float(i)) for i in range(COUNT)]) == expected

    def test_of_results(self, device, schedule):
        run = sluice.pipeline(lambda x: marked(x * 2, 5.0), schedule=schedule, device=graphing(device))
        assert [x.factor for x in run([torch.ones(1)] * COUNT)] == [5.0] * COUNT

    @pytest.mark.parametrize("kind", CONTAINERS)
    def test_of_containers_of_a_loader(self, device, schedule, kind):
        make = CONTAINERS[kind]
        run = sluice.pipeline(lambda batch: batch["rows"][0] * batch["rows"].factor, schedule=schedule, device=graphing(device))
        batches = [{"rows": make(torch.ones(1), 1.0 + i % 3)} for i in range(COUNT)]
        assert epochs(run, batches) == [[[1.0 + i % 3] for i in range(COUNT)]] * 2

    @pytest.mark.parametrize("kind", CONTAINERS)
    def test_of_containers_between_stages(self, device, schedule, kind):
        make = CONTAINERS[kind]
        run = sluice.pipeline(lambda x: {"rows": make(x * 2, 3.0)}, lambda batch: batch["rows"][0] * batch["rows"].factor,
                              schedule=schedule, device=graphing(device))
        assert epochs(run, [torch.ones(1)] * COUNT) == [[[6.0]] * COUNT] * 2

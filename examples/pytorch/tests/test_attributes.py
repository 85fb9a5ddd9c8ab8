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


class Boxes(torch.Tensor):
    """As torchvision's `BoundingBoxes`: few operations keep what it is."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        with torch._C.DisableTorchFunctionSubclass():
            result = function(*arguments, **(options or {}))
        if function in (torch.Tensor.clone, torch.Tensor.to, torch.Tensor.detach) and isinstance(arguments[0], cls):
            result = boxes(result, **arguments[0].__dict__)
        return result


def boxes(tensor, **attributes):
    result = tensor.as_subclass(Boxes)
    result.__dict__.update(attributes)
    return result


def mixed():
    """Some batches are of a class of the program's, with attributes or without."""
    values = [torch.full((2,), float(i)) for i in range(COUNT)]
    return [x if i % 4 == 3 or i > 30 else boxes(x) if i % 4 == 2 else boxes(x, format=f"xy{i}") for i, x in enumerate(values)]


def told(tensor):
    return type(tensor), dict(tensor.__dict__), tensor.tolist()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("graph", [None, False])
def test_of_tensors_of_a_programs_class(device, schedule, graph):
    seen = []

    def look(x):
        seen.append(told(x))
        return x + 1

    first = sluice.stage(lambda x, _: x, graph=graph)
    run = sluice.pipeline(first, look, schedule=schedule, device=graphing(device))
    assert [x.tolist() for x in run([(x, 3) for x in mixed()])] == [(x + 1).tolist() for x in mixed()]
    eager = [told(x) for x in mixed()]
    if schedule == "graphed":  # where the others are a graph's
        seen, eager = [[each for each in some if each[0] is Boxes] for some in (seen, eager)]
    assert seen == eager


def test_of_prefetched_tensors_of_a_programs_class(device):
    for slots in (2, 3):
        assert [told(x) for x, _ in sluice.prefetch([(x, 3) for x in mixed()], device, slots=slots)] == [told(x) for x in mixed()]

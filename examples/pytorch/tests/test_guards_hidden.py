"""What a stage reads on the host where its code does not name it, or names it in a way of its own, beside a plain loop by graphs."""

import functools

import pytest
import torch
from guarded_training import choose_soon, graphing  # noqa: F401  (a fixture)
from hidden_reads import (CASES, PATHS, asdict, attribute_of_a_parameter, buffer_that_requires_a_gradient, class_of_a_layer, derived,
                          descriptor, disabled_scaler, of_setting, of_state)

import sluice

pytestmark = pytest.mark.usefixtures("by_library")
COUNT = 20


def bits(value):
    return value.tolist() if isinstance(value, torch.Tensor) else [bits(each) for each in value] if isinstance(value, list) else value


def kept(case, iterate):
    found = []
    for epoch in range(3):
        case.change(epoch)
        with case.around(epoch):
            found.append([bits(x) for x in iterate([torch.full((2,), 1.0 + i, device="cpu") for i in range(COUNT)])])
        found.append(bits(case.found()))
    return found


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("name", CASES)
def test_what_the_code_does_not_say(name):
    torch.manual_seed(0)
    case = CASES[name]()
    expected = kept(case, lambda batches: map(case.stage, batches))
    torch.manual_seed(0)
    case = CASES[name]()
    run = sluice.pipeline(case.stage, schedule="graphed", device=graphing("cpu"))
    assert kept(case, run) == expected, str(run.report())


def test_a_default_device_that_is_set_again_is_the_same():
    run = sluice.pipeline(lambda x: x * torch.ones(2), schedule="graphed", device=graphing("cpu"))
    for _ in range(3):
        with torch.device("cpu"):
            assert [x.tolist() for x in run([torch.ones(2)] * COUNT)] == [[1.0, 1.0]] * COUNT
    assert run.report().changes == {} and run.report().replays["<lambda>"] > 2 * COUNT, str(run.report())


def test_what_stays_is_no_reason():
    """The same stages become graphs where nothing changes."""
    for case in (of_setting(lambda setting: functools.reduce(getattr, PATHS[0].split("."), setting)), asdict(), descriptor(),
                 attribute_of_a_parameter(), buffer_that_requires_a_gradient(), class_of_a_layer(), disabled_scaler(),
                 derived(torch.nn.BatchNorm1d, "momentum", [0.1] * 3, num_features=2), of_state(lambda optimizer, weight: None)):
        run = sluice.pipeline(sluice.stage(case.stage, "stage"), schedule="graphed", device=graphing("cpu"))
        for _ in range(2):
            list(run([torch.full((2,), 1.0 + i) for i in range(COUNT)]))
        assert run.report().replays["stage"] > COUNT, str(run.report())


def test_a_pipeline_in_the_body_of_another():
    """Which follows the operations of its loop's body, as no program's mode does."""
    inner = sluice.pipeline(sluice.stage(lambda x: x * 2, "inner"), schedule="graphed", device=graphing("cpu"))
    outer = sluice.pipeline(lambda x: x + 1, schedule="automatic", device=graphing("cpu"))
    for _ in outer([torch.ones(2)] * 4):
        assert [x.tolist() for x in inner([torch.ones(2)] * COUNT)] == [[2.0, 2.0]] * COUNT
    assert inner.report().replays["inner"] > 2 * COUNT and inner.report().refusals == {}, str(inner.report())


def kept_beside_a_body(case, iterate):
    found = []
    for i, x in enumerate(iterate([torch.full((2,), 1.0 + i) for i in range(60)])):
        found.append(bits(x))
        case.change(i + 1)
    return found


@pytest.mark.parametrize("name", ["parameter", "transposed", "state", "rate", "forward hook", "derived batch norm"])
def test_a_loops_body_that_changes_it(name):
    """`automatic` stays a plain loop."""
    make = CASES[name] if name != "derived batch norm" else lambda: derived(
        torch.nn.BatchNorm1d, "momentum", [0.1 / (i + 1) for i in range(61)], num_features=2)
    torch.manual_seed(0)
    case = make()
    expected = kept_beside_a_body(case, lambda batches: map(case.stage, batches))
    torch.manual_seed(0)
    case = make()
    run = sluice.pipeline(case.stage, schedule="automatic", device=graphing("cpu"))
    assert kept_beside_a_body(case, run) == expected, str(run.report())

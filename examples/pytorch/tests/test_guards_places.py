"""Graphs beside plain loops, where a number changes that a stage reads: in modules, however imported, and other places."""

import importlib
import sys
import types

import pytest
import torch
from guarded_training import COUNT, SCHEDULES, choose_soon, graphing, replays  # noqa: F401  (a fixture)

import sluice

pytestmark = pytest.mark.usefixtures("by_library")


@pytest.mark.parametrize("schedule", SCHEDULES)
class TestPlaces:
    def check(self, device, schedule, function, change, expected, is_captured=True):
        """`change(i)` before epoch i; `expected(i)` is what a batch of ones becomes."""
        run = sluice.pipeline(function, schedule=schedule, device=graphing(device))
        for epoch in range(4):
            change(epoch)
            found = [x.tolist() for x in run([torch.ones(2)] * COUNT)]
            assert found == [[expected(epoch)] * 2] * COUNT, f"epoch {epoch}\n{run.report()}"
        if schedule == "graphed" and is_captured:
            assert replays(run, next(iter(run.report().replays))) > 3 * COUNT, str(run.report())

    def test_in_a_module_without_a_file(self, device, schedule):
        """As a folder without __init__.py is one."""
        settings = types.ModuleType("settings_of_a_test")
        settings.inner = types.ModuleType("settings_of_a_test.inner")
        self.check(device, schedule, lambda x: x * settings.inner.factor, lambda i: setattr(settings.inner, "factor", i + 0.5),
                   lambda i: i + 0.5)

    @pytest.mark.parametrize("way", ["import", "from", "modules", "import_module", "__import__"])
    def test_in_a_module_that_the_stage_imports(self, device, schedule, way, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "folder_of_a_test").mkdir()
        (tmp_path / "folder_of_a_test" / "settings.py").write_text("FACTOR = 0.0")
        settings = importlib.import_module("folder_of_a_test.settings")

        def import_whole(x):
            import folder_of_a_test.settings
            return x * folder_of_a_test.settings.FACTOR

        def import_from(x):
            from folder_of_a_test.settings import FACTOR
            return x * FACTOR

        stage = {"import": import_whole, "from": import_from, "modules": lambda x: x * sys.modules["folder_of_a_test.settings"].FACTOR,
                 "import_module": lambda x: x * importlib.import_module("folder_of_a_test.settings").FACTOR,
                 "__import__": lambda x: x * __import__("folder_of_a_test.settings").settings.FACTOR}[way]
        self.check(device, schedule, stage, lambda i: setattr(settings, "FACTOR", i + 0.5), lambda i: i + 0.5,
                   is_captured=way in ("import", "from"))
        del sys.modules["folder_of_a_test.settings"], sys.modules["folder_of_a_test"]

    def test_in_a_metaclass_and_in_a_pattern(self, device, schedule):
        class Meta(type):
            factor = 0.0

        class Settings(metaclass=Meta):
            offset = 1.0

        def stage(x):
            match settings:
                case Settings(offset=offset):
                    return x * Settings.factor + offset

        def change(i):
            Meta.factor, settings.offset = i + 0.5, float(i // 2)

        settings = Settings()
        self.check(device, schedule, stage, change, lambda i: i + 0.5 + i // 2)

    def test_in_keyword_defaults(self, device, schedule):
        def stage(x, *, factor=0.0):
            return x * factor

        self.check(device, schedule, stage, lambda i: setattr(stage, "__kwdefaults__", {"factor": i + 0.5}), lambda i: i + 0.5)


OPTIONS = types.SimpleNamespace()


class Scaled(torch.nn.Module):
    def forward(self, x):
        factor = getattr(self, "factor", 1.0) * getattr(stage_with_names, "factor", 1.0) * getattr(OPTIONS, "factor", 1.0)
        try:
            factor *= A_GLOBAL_THAT_COMES  # noqa: F821
        except NameError:
            pass
        return x * factor


def stage_with_names(model, x):
    return model(x)


NAMES = {"global": lambda model, factor: globals().__setitem__("A_GLOBAL_THAT_COMES", factor),
         "function": lambda model, factor: setattr(stage_with_names, "factor", factor),
         "record": lambda model, factor: setattr(OPTIONS, "factor", factor),
         "module": lambda model, factor: setattr(model[0], "factor", factor),
         "class": lambda model, factor: setattr(Scaled, "factor", factor),
         "forward of the user's": lambda model, factor: setattr(model[0], "forward", lambda x: x * factor),
         "forward of PyTorch's": lambda model, factor: setattr(model[1], "forward", lambda x: x * factor)}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("place", NAMES)
def test_a_name_that_comes_between_epochs(device, schedule, place):
    """Code asks for it before, and does without."""
    model = torch.nn.Sequential(Scaled(), torch.nn.Identity())
    run = sluice.pipeline(lambda x: stage_with_names(model, x), schedule=schedule, device=graphing(device))
    try:
        for factor in (1.0, 2.0, 3.0):
            if factor > 1.0:
                NAMES[place](model, factor)
            assert [x.tolist() for x in run([torch.ones(2)] * COUNT)] == [[factor] * 2] * COUNT, f"{factor}\n{run.report()}"
        assert schedule != "graphed" or replays(run, "<lambda>") > 2 * COUNT, str(run.report())
    finally:
        globals().pop("A_GLOBAL_THAT_COMES", None)
        for owner in (stage_with_names, OPTIONS, Scaled):
            vars(owner).get("factor") and delattr(owner, "factor")


def test_a_step_of_the_optimizers_own_that_comes_between_epochs(device):
    weight = torch.nn.Parameter(torch.ones(2, device=device))
    optimizer = torch.optim.SGD([weight], lr=0.5)

    def train(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return weight.detach().clone()

    run = sluice.pipeline(train, schedule="graphed", device=graphing(device))
    assert [x[0].item() for x in run([torch.ones(2)] * COUNT)] == [1 - 0.5 * i for i in range(1, COUNT + 1)]
    optimizer.step = lambda: weight.data.add_(weight.grad)
    assert [x[0].item() for x in run([torch.ones(2)] * COUNT)] == [1 - 0.5 * COUNT + i for i in range(1, COUNT + 1)], str(run.report())


MODES = {"precision": lambda on: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32" if on else "ieee"),
         "precision of convolutions": lambda on: setattr(torch.backends.cudnn.conv, "fp32_precision", "tf32" if on else "ieee"),
         "all precisions": lambda on: setattr(torch.backends, "fp32_precision", "tf32" if on else "ieee"),
         "as before": lambda on: setattr(torch.backends.cuda.matmul, "allow_tf32", on),
         "by name": lambda on: torch.set_float32_matmul_precision("high" if on else "highest"),
         "half": lambda on: setattr(torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", not on),
         "bfloat16": lambda on: setattr(torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", not on),
         "accumulation": lambda on: setattr(torch.backends.cuda.matmul, "allow_fp16_accumulation", on)}


@pytest.fixture
def precisions():
    """As they were. `fp32_precision` of one operation is back to what that of all of them says."""
    matmul, getters = torch.backends.cuda.matmul, [torch.backends, torch.backends.cuda.matmul, torch.backends.cudnn.conv]
    names = "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction", "allow_fp16_accumulation"
    before = [getattr(matmul, name) for name in names], [owner.fp32_precision for owner in getters]
    yield
    torch.set_float32_matmul_precision("highest")
    for name, value in zip(names, before[0]):
        setattr(matmul, name, value)
    for owner, value in zip(getters, before[1]):
        owner.fp32_precision = value


@pytest.mark.parametrize("mode", MODES)
def test_a_precision_that_changes_between_epochs(device, mode, precisions):
    run = sluice.pipeline(lambda x: x * 2, schedule="graphed", device=graphing(device))
    for epoch in range(4):
        MODES[mode](epoch % 2 == 1)
        assert [x.tolist() for x in run([torch.ones(2)] * COUNT)] == [[2.0] * 2] * COUNT
    assert run.report().changes == {"<lambda>": {"a mode of PyTorch, such as autocast or no_grad": 3}}, str(run.report())

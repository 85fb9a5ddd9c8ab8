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

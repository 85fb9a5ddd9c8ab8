"""What the tests share. They need PyTorch and the installed package, not a GPU; those of CUDA are skipped without one."""

import gc
import os

# One, unless the caller says otherwise: beside other work, threads that wait for each other take several times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
# Collections of garbage need not look through PyTorch's own objects.
gc.collect()
gc.freeze()
pytest.importorskip("sluice", reason="the package is not installed: pip install examples/pytorch")


def devices() -> list[str]:
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", devices())


@pytest.fixture(autouse=True)
def same_numbers_every_time() -> None:
    torch.manual_seed(7)


class Rows:
    """Rows of uneven length, some of them empty, with values that are in no row behind the last."""

    def __init__(self, lengths: list[int], device: str, behind: int = 0) -> None:
        self.lengths = lengths
        self.count = sum(lengths)
        self.size = self.count + behind
        self.offsets = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], device=device)

    def of(self, values: "torch.Tensor") -> list["torch.Tensor"]:
        return list(values[:self.count].split(self.lengths))


@pytest.fixture
def rows(device: str) -> Rows:
    return Rows([3, 0, 1, 40, 7, 0, 2], device, behind=5)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """A library of src/steps_cuda.cpp over a pretended CUDA."""
    from pretended_device import built
    return built(tmp_path_factory.mktemp("pretended"))


@pytest.fixture(params=["python", "library"])
def by_library(request, monkeypatch):
    """Whether a `GraphingDevice` has its batches done by the library; see `do_by_library`."""
    if request.param == "python":
        yield []
        return
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device, which has a library of its own")
    from graphing_device import GraphingDevice
    from pretended_device import do_by_library
    yield do_by_library(monkeypatch, GraphingDevice, request.getfixturevalue("compiled"))

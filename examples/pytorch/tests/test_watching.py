"""A batch that is watched has the bits of one that is not: PyTorch takes other formulas for some gradients where operations are
followed."""

import contextlib
import pathlib
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import sluice
from guarded_training import graphing
from sluice.pipelines.watching import Watch

FLAT, ROWS, IMAGES = (32, 16), (4, 10, 16), (4, 8, 16, 16)
LAYERS = {
    "linear": (lambda: nn.Linear(16, 8), ROWS), "conv": (lambda: nn.Conv2d(8, 8, 3), IMAGES),
    "transposed": (lambda: nn.ConvTranspose2d(8, 8, 2, 2), IMAGES), "batch norm": (lambda: nn.BatchNorm2d(8), IMAGES),
    "group norm": (lambda: nn.GroupNorm(2, 8), IMAGES), "instance norm": (lambda: nn.InstanceNorm2d(8, affine=True), IMAGES),
    "layer norm": (lambda: nn.LayerNorm(16), ROWS), "rms norm": (lambda: nn.RMSNorm(16), ROWS),
    "transformer": (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), ROWS),
    "transformer, evaluated": (lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(), ROWS),
    "lstm": (lambda: nn.LSTM(16, 8, batch_first=True), ROWS), "gru": (lambda: nn.GRU(16, 8, batch_first=True), ROWS),
    "max pool": (lambda: nn.MaxPool2d(2), IMAGES), "adaptive pool": (lambda: nn.AdaptiveAvgPool2d(3), IMAGES),
    "upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), IMAGES), "dropout": (lambda: nn.Dropout(0.3), ROWS),
    "unfold": (lambda: nn.Unfold(2), IMAGES), "rrelu": (lambda: nn.RReLU(), FLAT), "prelu": (lambda: nn.PReLU(), FLAT),
    "glu": (lambda: nn.GLU(), FLAT), "gelu": (lambda: nn.GELU(), FLAT), "mish": (lambda: nn.Mish(), FLAT),
}
WORDS = torch.arange(32) * 7 % 16
TARGET = torch.linspace(0.01, 0.99, 512).reshape(FLAT)
FUNCTIONS = {
    "cross entropy": lambda x, t, y: F.cross_entropy(x, t, label_smoothing=0.1),
    "bce": lambda x, t, y: F.binary_cross_entropy_with_logits(x, y, pos_weight=torch.full_like(y[0], 2)),
    "kl": lambda x, t, y: F.kl_div(x.log_softmax(-1), y, reduction="batchmean"), "huber": lambda x, t, y: F.huber_loss(x, y),
    "triplet": lambda x, t, y: F.triplet_margin_loss(x, y, y.flip(0)), "cosine": lambda x, t, y: F.cosine_similarity(x, y),
    "normalize": lambda x, t, y: F.normalize(x), "var": lambda x, t, y: x.var(-1), "std": lambda x, t, y: x.std(),
    "logsumexp": lambda x, t, y: x.logsumexp(-1), "cumsum": lambda x, t, y: x.cumsum(0), "norm": lambda x, t, y: x.norm(3, -1),
    "einsum": lambda x, t, y: torch.einsum("ij,kj->ik", x, y), "where": lambda x, t, y: torch.where(x > 0, x, 0.0),
    "cdist": lambda x, t, y: torch.cdist(x, y), "gather": lambda x, t, y: x.gather(1, t[:, None]), "index": lambda x, t, y: x[t],
    "sort": lambda x, t, y: x.sort(-1)[0], "topk": lambda x, t, y: x.topk(3)[0], "amax": lambda x, t, y: x.amax(-1),
    "attention": lambda x, t, y: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
    "inverse": lambda x, t, y: torch.linalg.inv(x.T @ x + 4 * torch.eye(16, device=x.device)),
    "solve": lambda x, t, y: torch.linalg.solve(x.T @ x + 4 * torch.eye(16, device=x.device), y.T),
    "power": lambda x, t, y: (x.abs() + 0.1) ** 1.5, "embedding": lambda x, t, y: F.embedding(t, x),
    "scatter": lambda x, t, y: x.scatter_add(1, t[:, None], y[:, :1]), "put": lambda x, t, y: x.index_add(0, t, y),
}


class Scaled(nn.Module):
    def __init__(self, function, device: str) -> None:
        super().__init__()
        self.weight, self.function = nn.Parameter(torch.linspace(-1, 1, 16)), function
        self.words, self.target = WORDS.to(device), TARGET.to(device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x * self.weight, self.words, self.target)


def bits(make, shape, device: str, is_watched: bool) -> list:
    torch.manual_seed(3)
    model = make().to(device)
    x = torch.randn(shape, device=device, requires_grad=True)
    with Watch(torch.device(device), True) if is_watched else contextlib.nullcontext():
        out = model(x)
        out = out[0] if isinstance(out, tuple) else out
        out.square().sum().backward()
    return [out.detach(), x.grad, *(p.grad for p in model.parameters())]


def check(make, shape, device: str) -> None:
    # Some operations on CUDA add by atomics.
    torch.use_deterministic_algorithms(device == "cuda", warn_only=True)
    try:
        for a, b in zip(bits(make, shape, device, False), bits(make, shape, device, True)):
            assert (a is None and b is None) or torch.equal(a, b)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYERS)
def test_layers(device, name):
    check(*LAYERS[name], device)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(device, name):
    check(lambda: Scaled(FUNCTIONS[name], device), FLAT, device)


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax", "Rprop", "Adadelta",
                                  "ASGD"])
def test_optimizers(device, kind, foreach):
    found = []
    for is_watched in (False, True):
        torch.manual_seed(0)
        model = nn.Linear(16, 16).to(device)
        optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01, foreach=foreach)
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.ones(3, 16, device=device)).square().sum().backward()
            with Watch(torch.device(device), True) if is_watched else contextlib.nullcontext():
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
        found.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*found))


def cubed(x):
    return (x * x * x).sum()


FORWARD = {"jvp of grad": lambda x: torch.func.jvp(torch.func.grad(cubed), (x,), (x,))[1], "hessian": lambda x: torch.func.hessian(cubed)(x),
           "jacfwd": lambda x: torch.func.jacfwd(lambda x: F.linear(x, WEIGHT.to(x.device)) * x)(x),
           "jvp": lambda x: torch.func.jvp(lambda x: F.linear(x, WEIGHT.to(x.device), x), (x,), (x,))[1]}
WEIGHT = torch.eye(5) + 0.5


@pytest.mark.parametrize("name", FORWARD)
@pytest.mark.parametrize("schedule", ["overlapped", "graphed", "automatic"])
def test_derivatives_forward(device, name, schedule):
    """Zeros that PyTorch carries along have no memory."""
    batches = [torch.arange(5.0) + i for i in range(20)]
    run = sluice.pipeline(FORWARD[name], schedule=schedule, device=graphing(device))
    assert [x.tolist() for x in run(batches)] == [FORWARD[name](x.to(device)).tolist() for x in batches], str(run.report())


def test_the_first_backward_pass_of_a_process():
    """What PyTorch imports for it is none of the stage's."""
    program = """if True:
        import sys
        sys.path.insert(0, sys.argv[1])
        import torch, sluice
        from graphing_device import GraphingDevice
        net = torch.nn.Linear(4, 1)
        def step(x):
            loss = net(x).square().mean()
            loss.backward()
            net.zero_grad()
            return loss.detach()
        run = sluice.pipeline(step, schedule="graphed", device=GraphingDevice())
        list(run([torch.ones(2, 4)] * 40))
        print(run.stages[0].graphs.replays, run.report())
    """
    folder = str(pathlib.Path(__file__).parent)
    found = subprocess.run([sys.executable, "-c", program, folder], check=True, capture_output=True, text=True).stdout
    assert int(found.split()[0]) > 20, found

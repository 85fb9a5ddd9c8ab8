"""Second derivatives of the GIoU loss, which are refused: zeros in their place would pass for numbers."""

import pytest
import torch
from torch.autograd import forward_ad, functional

import sluice


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("how", ["hessian", "vectorized", "forward", "hvp", "of a batch", "backward of forward", "forward of backward"])
def test_second_derivatives_are_no_zeros(how, padded):
    boxes = torch.tensor([[0.0, 0, 2, 2], [1, 1, 4, 5]])
    boxes, rows = (boxes[None], {"mask": torch.ones(1, 2, dtype=torch.bool)}) if padded else (boxes, {"offsets": [0, 1, 2]})
    targets = boxes + 0.5

    def loss(predictions):
        return sluice.giou_loss(predictions, targets, **rows)

    def by_duals():
        leaf = boxes.clone().requires_grad_()
        with forward_ad.dual_level():
            found = loss(forward_ad.make_dual(leaf, torch.ones_like(leaf)))
            if how == "forward of backward":
                torch.autograd.grad(found, leaf)
            torch.autograd.grad(forward_ad.unpack_dual(found).tangent + leaf.sum(), leaf)

    work = {"hessian": lambda: functional.hessian(loss, boxes), "vectorized": lambda: functional.hessian(loss, boxes, vectorize=True),
            "forward": lambda: functional.hessian(loss, boxes, vectorize=True, outer_jacobian_strategy="forward-mode"),
            "hvp": lambda: functional.hvp(loss, boxes, boxes),
            "of a batch": lambda: functional.hessian(lambda all: torch.func.vmap(loss)(all).sum(), torch.stack([boxes, boxes]))}
    with pytest.raises(RuntimeError, match="^sluice.giou_loss: a second derivative was asked for, and is not known"):
        work.get(how, by_duals)()


def test_a_gradient_of_vmap_from_outside():
    boxes = torch.rand(3, 5, 2, 2).cumsum(2).flatten(2).requires_grad_()

    def loss(predictions):
        return sluice.giou_loss(predictions, torch.tensor([0.2, 0.3, 0.9, 1.1]).expand(5, 4), [0, 3, 5])

    found, = torch.autograd.grad(torch.func.vmap(loss)(boxes).sum(), boxes)
    expected, = torch.autograd.grad(sum(map(loss, boxes)), boxes)
    torch.testing.assert_close(found, expected)


def test_what_is_kept_for_a_second_derivative_holds_no_predictions():
    leaf = torch.rand(5, 4, requires_grad=True)
    predictions = leaf * 2
    storage = predictions.untyped_storage()
    loss = sluice.giou_loss(predictions, torch.rand(5, 4), [0, 5])
    del predictions
    assert torch._C._storage_Use_Count(storage._cdata) == 1
    loss.backward()
    assert leaf.grad is not None


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_of_what_is_compiled_as_of_pytorchs_own(backend):
    """The guide says so."""
    targets = torch.rand(5, 4)

    def penalty(loss):
        torch._dynamo.reset()
        leaf = torch.rand(5, 4, requires_grad=True)
        run = sluice.pipeline(torch.compile(loss, backend=backend), schedule="overlapped", device="cpu")
        (found,) = run([leaf * 2])
        gradient, = torch.autograd.grad(found, leaf, create_graph=True)
        return gradient.requires_grad and bool(torch.autograd.grad(gradient.square().sum(), leaf)[0].any())

    assert penalty(lambda x: x.exp().sum()) is (backend == "eager")
    assert penalty(lambda x: sluice.row_softmax(x, [0, 2, 5]).square().sum()) is (backend == "eager")
    if backend == "eager":
        with pytest.raises(RuntimeError, match="^sluice.giou_loss: a second derivative was asked for, and is not known"):
            penalty(lambda x: sluice.giou_loss(x, targets, [0, 5]))
    else:
        assert not penalty(lambda x: sluice.giou_loss(x, targets, [0, 5]))

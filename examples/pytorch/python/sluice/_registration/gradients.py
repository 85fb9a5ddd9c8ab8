"""An operator's gradient and its derivative forward, registered with PyTorch, and the operator called with them."""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch
from torch._C._functorch import TransformType
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad

ops = torch.ops.sluice
library = torch.library.Library("sluice", "IMPL")
below_autograd = torch._C._AutoDispatchBelowAutograd


def told_of_memory(function: Callable) -> Callable:
    """Which raises PyTorch's own kind of error where a GPU has no room, as PyTorch does; on the CPU that is a RuntimeError."""
    @functools.wraps(function)
    def told(*inputs: Any, **options: Any) -> Any:
        try:
            return function(*inputs, **options)
        except RuntimeError as error:
            if "sluice: PyTorch made no tensor" not in str(error) or not any(getattr(each, "is_cuda", False)
                                                                             for each in (*inputs, *options.values())):
                raise
            raise torch.OutOfMemoryError(str(error)) from None
    return told


eager: dict[str, Callable] = {}  # the operators, called without the dispatcher's way through Python where it would do nothing


def is_forward() -> bool:
    """Whether derivatives may be carried along: no tensor tells of its own by `requires_grad`."""
    return forward_ad._current_level >= 0


def require_few(op: str, most: int, what: str, *kinds: Any) -> None:
    """Refuses what would come out as zeros, without a word."""
    if sum(transform.key() in kinds for transform in torch._C._functorch.get_interpreter_stack() or ()) > most:
        raise RuntimeError(f"sluice.{op}: {what} was asked for, and is not known; expected one of the two by other means")


def require_first(op: str) -> None:
    if torch._C._are_functorch_transforms_active():
        require_few(op, 1, "a second derivative", TransformType.Grad, TransformType.Jvp)


class WithoutSecond(torch.autograd.Function):
    """A gradient as it is, whose own gradient raises."""

    generate_vmap_rule = True

    @staticmethod
    def forward(op: str, gradient: torch.Tensor, link: torch.Tensor, incoming: torch.Tensor) -> torch.Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        ctx.op = inputs[0]

    @staticmethod
    def backward(ctx: Any, _: Any) -> Any:
        refuse_second(ctx.op)


def refuse_second(op: str) -> None:
    raise RuntimeError(f"sluice.{op}: a second derivative was asked for, and is not known; expected a first one, or another loss")


def link_of(tensor: torch.Tensor) -> torch.Tensor:
    """Leads autograd to `tensor`, and holds none of its memory."""
    return tensor[:0].clone() if tensor.dim() > 0 else tensor


def without_second(op: str, gradient: torch.Tensor, link: torch.Tensor, incoming: torch.Tensor) -> torch.Tensor:
    """A gradient by `create_graph=True`, or of what carries a derivative forward. Else a loss with a penalty on it would lack the
    penalty's part, without a word. `torch.func`'s transforms are counted in the forward pass, see `require_first`."""
    if is_forward() and forward_ad.unpack_dual(link).tangent is not None:
        refuse_second(op)
    return without_gradient(op, gradient, link, incoming)


def without_gradient(op: str, derivative: torch.Tensor, link: torch.Tensor, incoming: torch.Tensor) -> torch.Tensor:
    if not torch.is_grad_enabled():
        return derivative
    return WithoutSecond.apply(op, derivative, link, incoming)


def gradient_of(op: str, save: Callable, backward: Callable, forward: Callable) -> type[torch.autograd.Function]:
    """An operator with its gradient. `save` returns what both directions need; `forward(ctx, *tangents)` has None for an input
    that carries none. What is given behind the operator's arguments is for `save`."""
    run = getattr(ops, op).default
    count = len(run._schema.arguments)

    class Gradient(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*inputs: Any) -> Any:
            with below_autograd():
                return run(*inputs[:count])

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            kept = save(ctx, inputs, output)
            ctx.save_for_forward(*kept)
            ctx.save_for_backward(*kept)

    Gradient.__name__ = op
    Gradient.backward = staticmethod(told_of_memory(backward))
    Gradient.jvp = staticmethod(forward)
    return Gradient


def register_gradient(op: str, save: Callable, backward: Callable, forward: Callable,
                      is_linked: bool = False) -> type[torch.autograd.Function]:
    """In place of `torch.library.register_autograd`, which knows no derivatives forward: `torch.func.jvp` gives zeros there. `save` gets
    a link behind the other inputs where there is to be one."""
    gradient = gradient_of(op, save, backward, forward)
    run = getattr(ops, op).default
    defaults = [argument.default_value for argument in run._schema.arguments]
    # The kernel is called within torch.func's transforms, not around them, as `Function.apply` takes it where there are any.
    apply = super(torch.autograd.Function, gradient).apply

    def kernel(*inputs: Any) -> Any:
        inputs += tuple(defaults[len(inputs):])  # which the dispatcher leaves out
        if is_forward() or (torch.is_grad_enabled() and inputs[0].requires_grad):
            inputs += (link_of(inputs[0]),) if is_linked else ()
            if not torch._C._are_functorch_transforms_active():
                return apply(*inputs)
            with enable_single_level_autograd_function():
                return apply(*inputs)
        with below_autograd():
            return run(*inputs)

    def call(*inputs: Any) -> Any:
        if torch.compiler.is_compiling():
            return run(*inputs)
        if torch._C._are_functorch_transforms_active():  # of which there may be several, one around the other
            if op in ("row_max", "row_softmax", "row_sort"):
                require_few(op, 1, "a derivative forward of one forward", TransformType.Jvp)
            return gradient.apply(*inputs, *defaults[len(inputs):])
        if is_forward():
            return run(*inputs)
        if torch.is_grad_enabled() and inputs[0].requires_grad:
            return apply(*inputs)
        with below_autograd():
            return run(*inputs)

    library.impl(op, kernel, "Autograd")
    eager[op] = told_of_memory(call)
    return gradient

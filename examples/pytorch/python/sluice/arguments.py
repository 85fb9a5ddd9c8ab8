"""What the operators' functions were given: one sentence where it is wrong, before PyTorch's dispatcher looks at it."""

from __future__ import annotations

import operator
import os
import re
import sys
import warnings
from typing import Any, Callable, Optional, Sequence, Union

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.parameter import UninitializedTensorMixin

Offsets = Union[torch.Tensor, Sequence[int]]
NUMBERS = (int, float, torch.SymInt, torch.SymFloat)
PACKAGE = os.path.dirname(__file__) + os.sep
NUMBERLESS = (UninitializedTensorMixin, getattr(getattr(torch, "masked", None), "MaskedTensor", UninitializedTensorMixin))
# What the operators' side of PyTorch, its stable ABI, does not know: raw bits, and numbers that share a byte.
RAW = frozenset(kind for kind in vars(torch).values() if isinstance(kind, torch.dtype) and re.fullmatch(
    r"torch\.(bits\d+(x\d+)?|u?int[1-7]|quint\w+|qint\w+|float4_\w+)", str(kind)))
INTEGERS = (torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64)


def shown(value: Any) -> str:
    """What was given, in a sentence."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # of an object's own, or for an integer of thousands of digits
        return f"an object of the type {type(value).__name__}"
    return text if len(text) <= 120 else f"{text[:117]}..."


def counted(count: int, one: str) -> str:
    """1 box, 2 boxes."""
    return f"{count} {one}" if count == 1 else f"{count} {one}{'es' if one.endswith(('x', 'ch')) else 's'}"


def named(kind: type) -> str:
    """An int, a list."""
    return f"{'an' if kind.__name__[:1].lower() in tuple('aeiou') else 'a'} {kind.__name__}"


def warn(sentence: str) -> None:
    """Of the program's line, which is some generators away."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, stacklevel=level)


def flag_of(name: str, argument: str, value: Any, error: type[Exception] = TypeError) -> bool:
    """Of Python or NumPy."""
    if isinstance(value, bool):
        return value
    if type(value).__name__ not in ("bool", "bool_") and not (isinstance(value, int) and value in (0, 1)):
        raise error(f"sluice.{name}: {argument} is {shown(value)}, expected True or False")
    return bool(value)


def require_tensors(name: str, **given: object) -> None:
    """Dense ones, or nested, of numbers, on one device."""
    where: Any = None
    ordinary = True
    for argument, value in given.items():
        if not isinstance(value, torch.Tensor):
            raise RuntimeError(f"sluice.{name}: {argument} is {named(type(value))}, expected a tensor")
        if value.layout is not torch.strided or value.is_quantized:
            require_dense(name, argument, value)
        if value.dtype in RAW:
            raise RuntimeError(f"sluice.{name}: {argument} is of {str(value.dtype)[6:]}, expected numbers")
        if type(value) is not torch.Tensor:
            require_numbers(name, argument, value)
            ordinary = False
        device = value.device
        if where is None:
            where, other = device, argument
        elif device != where:
            refuse_device(name, argument, device, other, where)
    if not ordinary:
        require_all_fake(name, given)


def require_all_fake(name: str, given: dict) -> None:
    """Or none, of tensors that have a shape and no numbers: unless their mode takes others, PyTorch says nothing of the arguments."""
    fake = [argument for argument, value in given.items() if isinstance(value, FakeTensor) and not value.fake_mode.allow_non_fake_inputs]
    for argument, value in given.items() if fake else ():
        if type(value) in (torch.Tensor, torch.nn.Parameter) and not torch._C._functorch.is_functorch_wrapped_tensor(value):
            raise RuntimeError(f"sluice.{name}: {argument} is not fake, expected a FakeTensor, as {fake[0]} is one")


def require_numbers(name: str, argument: str, value: torch.Tensor) -> None:
    """Of its own."""
    if isinstance(value, NUMBERLESS):
        raise RuntimeError(f"sluice.{name}: {argument} is of class {type(value).__name__}, expected a dense tensor")


def require_dense(name: str, argument: str, value: torch.Tensor) -> None:
    if not value.is_nested:
        kind = "quantized" if value.is_quantized else f"of layout {value.layout}"
        raise RuntimeError(f"sluice.{name}: {argument} is {kind}, expected a dense tensor")


def refuse_device(name: str, argument: str, device: torch.device, other: str, where: torch.device) -> None:
    raise RuntimeError(f"sluice.{name}: {argument} is on {text_of(device)}, expected it on {text_of(where)}, where {other} is")


def text_of(device: torch.device) -> str:
    return {"cpu": "the CPU", "cuda": f"CUDA device {device.index}"}.get(device.type, f"device {device}")


def require_kind(name: str, kinds: Any, expected: str, **given: object) -> None:
    for argument, value in given.items():
        if not isinstance(value, kinds):
            raise RuntimeError(f"sluice.{name}: {argument} is {shown(value)}, expected {expected}")


def require_one_tensor(name: str, **given: torch.Tensor) -> None:
    """Not nested."""
    for argument, value in given.items():
        if value.is_nested:
            raise RuntimeError(f"sluice.{name}: {argument} is a nested tensor, expected a dense one")


def of_numpy(value: Any) -> Any:
    """What an array or a number of NumPy's is to Python."""
    return value.tolist() if hasattr(value, "__array__") and not isinstance(value, torch.Tensor) and hasattr(value, "tolist") else value


def pairs_of(name: str, kinds: Any, expected: str, **given: Any) -> list[tuple[Any, Any]]:
    """Each as two numbers of Python's."""
    pairs = []
    for argument, value in given.items():
        pair = of_numpy(value)
        pair = tuple(map(of_numpy, pair)) if isinstance(pair, Sequence) and not isinstance(pair, (str, bytes)) else ()
        if len(pair) != 2 or not all(isinstance(each, kinds) and fits(each) for each in pair):
            raise RuntimeError(f"sluice.{name}: {argument} is {shown(value)}, expected {expected}")
        pairs.append(pair)
    return pairs


def number_of(name: str, argument: str, value: Any) -> Any:
    """Of Python or NumPy, as Python's."""
    number = of_numpy(value)
    if not isinstance(number, NUMBERS) or not fits(number):
        raise RuntimeError(f"sluice.{name}: {argument} is {shown(value)}, expected a number{'' if fits(number) else ' of 64 bits'}")
    return number


def is_integer(value: Any) -> bool:
    """Of Python or NumPy; a tensor's number would have to be waited for."""
    return hasattr(type(value), "__index__") and not isinstance(value, torch.Tensor) and not hasattr(value, "__len__")


def fits(value: Any) -> bool:
    """Into 64 bits, if it is an integer."""
    return not isinstance(value, int) or -2 ** 63 <= value < 2 ** 63


def integer_of(name: str, argument: str, value: Any) -> Any:
    if isinstance(value, torch.SymInt):
        return value
    if isinstance(value, torch.Tensor):
        if value.numel() == 1 and value.device.type != "meta" and value.dtype in (torch.int64, *INTEGERS):
            return value
        raise RuntimeError(f"sluice.{name}: {argument} is {shown(value)}, expected an integer")
    if not isinstance(value, int):
        try:
            value = operator.index(value)
        except TypeError:
            raise RuntimeError(f"sluice.{name}: {argument} is {shown(value)}, expected an integer") from None
    if not fits(value):
        raise RuntimeError(f"sluice.{name}: {argument} is {shown(value)}, expected one of 64 bits")
    return value


def offsets_of(name: str, offsets: Offsets, like: torch.Tensor, other: str = "values") -> torch.Tensor:
    """Offsets of int64."""
    if not isinstance(offsets, torch.Tensor):
        made = of_list(offsets)
        if made is None:
            raise RuntimeError(f"sluice.{name}: offsets is {shown(offsets)}, expected a tensor or a list of integers")
        if isinstance(like, FakeTensor) and not isinstance(made, FakeTensor):
            made = like.fake_mode.from_tensor(made)
        return made.to(like.device)
    if offsets.layout is not torch.strided or offsets.is_nested:
        require_dense(name, "offsets", offsets)
        raise RuntimeError(f"sluice.{name}: offsets is a nested tensor, expected where each row begins")
    if type(offsets) is not torch.Tensor or type(like) is not torch.Tensor:
        require_numbers(name, "offsets", offsets)
        require_all_fake(name, {other: like, "offsets": offsets})
    if offsets.device != like.device:
        refuse_device(name, "offsets", offsets.device, other, like.device)
    if offsets.dtype in INTEGERS:
        return offsets.long()
    if offsets.dtype is not torch.int64:
        raise RuntimeError(f"sluice.{name}: offsets is of {str(offsets.dtype)[6:]}, expected integers")
    return offsets


def of_list(offsets: Any) -> Optional[torch.Tensor]:
    try:
        made = torch.tensor(offsets, device="cpu")
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
    return made.long() if made.dtype in (torch.int64, *INTEGERS) or made.numel() == 0 else None


def in_name_of(name: str, op: str, function: Callable) -> Callable:
    """`function`, which calls the operator `op`, with sentences that name the function that the caller knows."""
    def named(*args: Any) -> Any:
        try:
            return function(*args)
        except RuntimeError as error:
            if str(error).startswith(f"sluice.{op}:"):
                raise RuntimeError(str(error).replace(op, name, 1)) from None
            raise
    return named

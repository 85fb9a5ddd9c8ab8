"""Batches: tensors in containers of any kind, which is what loaders yield and stages exchange.

Containers are tuples, lists and dictionaries; named tuples; any other mapping, such as a `UserDict` (`transformers.BatchEncoding`);
dataclasses; and what is registered with `torch.utils._pytree`, such as `transformers.ModelOutput`. All else is a leaf.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import gc
import operator
import sys
import types
from collections.abc import Iterator, Mapping, MappingView, MutableMapping, MutableSequence
from typing import Any, Callable, NamedTuple, Optional

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree

from sluice.arguments import named, warn
from sluice.pipelines.holders import is_masked, is_wrapped

MOST_OBJECTS = 4096  # that are looked into, the nearest first
THE_PROGRAMS = (type, types.ModuleType, torch.nn.Module, torch.optim.Optimizer, torch.Generator, torch.dtype, torch.device)
ORDINARY = (torch.Tensor, torch.nn.Parameter)
FILLED = (set, bytearray, collections.deque)
CHILDLESS = frozenset([torch.Tensor, torch.nn.Parameter, str, bytes, int, float, bool, complex, type(None)])


def endless(tree: Any) -> ValueError:
    """In place of a RecursionError, by the innermost call that has room for it."""
    return ValueError(f"{named(type(tree))} contains itself, or is nested deeper than Python's limit of calls; expected a tree of "
                      "containers")


def attribute_of(value: Any, name: str, otherwise: Any = None) -> Any:
    """Of any object: the `__getattr__` of many a dictionary raises a KeyError, which `getattr` passes on."""
    try:
        return getattr(value, name, otherwise)
    except Exception:
        return otherwise


def with_attributes(new: Any, old: Any) -> Any:
    """`new`, made of `old`, with the attributes that the program gave that."""
    attributes = attribute_of(old, "__dict__")
    if attributes and not hasattr(old, "__tensor_flatten__"):  # those of such a tensor are what it is made of
        for name, value in attributes.items():
            new.__dict__.setdefault(name, value)
    return new


def has_attributes(tensor: torch.Tensor) -> bool:
    return bool(tensor.__dict__) and not hasattr(tensor, "__tensor_flatten__") and not isinstance(tensor, torch.nn.Parameter)


def as_tensor(leaf: Any) -> Any:
    """A tensor of the same numbers, for arrays of NumPy, and of other libraries that offer DLPack. Arrays of what PyTorch has no
    type for, such as strings, stay as they are."""
    if isinstance(leaf, torch.Tensor) or not hasattr(type(leaf), "__dlpack__"):
        return leaf
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(leaf, numpy.ndarray):
        return of_numpy(numpy, leaf)
    if any(stride < 0 for stride in getattr(leaf, "strides", None) or ()):
        leaf = leaf.copy()  # PyTorch has no negative strides, and its DLPack ends the process where it meets one
    return torch.from_dlpack(leaf)


def of_numpy(numpy: Any, array: Any) -> Any:
    if array.dtype.kind not in "biufc" or isinstance(array, numpy.ma.MaskedArray):
        return array
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    whole = all(stride >= 0 and stride % array.itemsize == 0 for stride in array.strides)
    if not whole or not array.flags.writeable:  # a tensor of what cannot be written comes with a warning
        array = array.copy()
    try:
        return torch.from_numpy(array)
    except TypeError:  # a kind of number that PyTorch does not know
        return array


class Kind(NamedTuple):
    """How a container of some type is opened, and made anew with other values in the same places."""

    values: Callable[[Any], list]
    names: Callable[[Any], Any]  # what is not values, and a graph may depend on
    rebuilt: Callable[[Any, list], Any]


def rebuilt_mapping(tree: Mapping, values: list) -> Any:
    if not isinstance(tree, MutableMapping):
        return type(tree)(dict(zip(tree, values)))
    result = copy.copy(tree)  # so that whatever else it holds comes with it
    for key, value in zip(list(tree), values):
        result[key] = value
    return result


def rebuilt_sequence(tree: Any, values: list) -> Any:
    if not isinstance(tree, MutableSequence):
        of = type(tree)
        # A class's own `__new__` may want other arguments.
        is_own = isinstance(tree, tuple) and isinstance(of.__new__, types.FunctionType)
        return with_attributes(tuple.__new__(of, values) if is_own else of(values), tree)
    result = copy.copy(tree)  # so that whatever else it holds comes with it
    result[:] = values
    return result


def rebuilt_dataclass(tree: Any, values: list) -> Any:
    result = copy.copy(tree)
    for field, value in zip(fields_of(tree), values):
        object.__setattr__(result, field, value)  # frozen ones, too
    return result


def fields_of(tree: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(tree) if hasattr(tree, field.name)]


PACKED = torch.nn.utils.rnn.PackedSequence
DICTIONARY = Kind(lambda tree: list(tree.values()), tuple, lambda tree, values: dict(zip(tree, values)))
TUPLE = Kind(list, len, lambda tree, values: tuple(values))
LIST = Kind(list, len, lambda tree, values: values)
NAMED = Kind(list, len, lambda tree, values: type(tree)._make(values))
SEQUENCE = Kind(list, len, rebuilt_sequence)
MAPPING = Kind(lambda tree: [tree[key] for key in tree], tuple, rebuilt_mapping)
DATACLASS = Kind(lambda tree: [getattr(tree, field) for field in fields_of(tree)], fields_of, rebuilt_dataclass)
# Its lengths are read on the CPU wherever its values are.
SEQUENCES = Kind(lambda tree: [tree.data, tree.sorted_indices, tree.unsorted_indices],
                 lambda tree: tuple(tree.batch_sizes.tolist()),
                 lambda tree, values: PACKED(values[0], tree.batch_sizes, values[1], values[2]))
KINDS: dict[type, Kind] = {dict: DICTIONARY, tuple: TUPLE, list: LIST, PACKED: SEQUENCES}


def kind_of(tree: Any) -> Optional[Kind]:
    """How `tree` is opened; nothing for a leaf."""
    of = type(tree)
    if of in CHILDLESS:
        return None
    found = KINDS.get(of)
    if found is None and not isinstance(tree, (torch.Tensor, type)):
        found = found_kind(of, tree)
        if found is not None:
            KINDS[of] = found
    return found


def found_kind(of: type, tree: Any) -> Optional[Kind]:
    if isinstance(tree, tuple) and hasattr(of, "_make"):
        return NAMED
    registered = _pytree.SUPPORTED_NODES.get(of)
    if isinstance(tree, MutableMapping) or registered is None and isinstance(tree, Mapping):
        return MAPPING
    if registered is not None:
        flatten, unflatten = registered.flatten_fn, registered.unflatten_fn
        return Kind(lambda tree: list(flatten(tree)[0]), lambda tree: repr(flatten(tree)[1]),
                    lambda tree, values: unflatten(values, flatten(tree)[1]))
    if dataclasses.is_dataclass(of):
        return DATACLASS
    return SEQUENCE if isinstance(tree, (tuple, list, collections.UserList)) else None


def map_tensors(work: Callable[[torch.Tensor], Any], tree: Any, arrays: bool = False) -> Any:
    """The same tree with `work(tensor)` in place of each tensor; and of each array, where the tree is a loader's batch."""
    if isinstance(tree, torch.Tensor):
        return work(tree)
    of = type(tree)
    if of is tuple:  # whose cycles go through another container
        return tuple([map_tensors(work, value, arrays) for value in tree])
    kind = kind_of(tree)
    if kind is not None:
        values = kind.values(tree)
        try:
            mapped = [map_tensors(work, value, arrays) for value in values]
        except RecursionError:
            raise endless(tree) from None
        if all(map(operator.is_, mapped, values)):
            return owned(tree) if arrays else tree  # without a tensor: an object like others
        try:
            return kind.rebuilt(tree, mapped)
        except Exception as error:
            raise TypeError(f"{named(type(tree))} cannot be made again with copies of its tensors: {type(error).__name__}: {error}; expected "
                            "a class that is made of what it holds, or registered with torch.utils._pytree") from error
    if not arrays or of in CHILDLESS:
        return tree
    leaf = as_tensor(tree)
    return work(leaf) if isinstance(leaf, torch.Tensor) else owned(leaf)


def map_batch(work: Callable[[torch.Tensor], Any], batch: Any) -> Any:
    """A loader's batch, whose arrays become tensors. Containers are others than the loader's, which may fill its own again."""
    return map_tensors(work, batch, True)


def owned(tree: Any) -> Any:
    """What the loader may fill again, without tensors; as it is if its class refuses that."""
    kind = kind_of(tree)
    try:
        if kind is None:
            numpy = sys.modules.get("numpy")
            return copy.copy(tree) if isinstance(tree, FILLED) or numpy is not None and isinstance(tree, numpy.ndarray) else tree
        values = kind.values(tree)
        own = [owned(value) for value in values]
        is_fixed = isinstance(tree, tuple) and all(map(operator.is_, own, values))
        return tree if is_fixed else kind.rebuilt(tree, own)
    except Exception:
        return tree


def leaves_of(tree: Any) -> Iterator[Any]:
    """Everything that is no container, in order."""
    kind = kind_of(tree)
    if kind is None:
        yield tree
    else:
        try:
            for value in kind.values(tree):
                yield from leaves_of(value)
        except RecursionError:
            raise endless(tree) from None


def tensors_of(tree: Any, others: Optional[list] = None) -> list[torch.Tensor]:
    """All tensors, in order, and in `others` what is no container. Called several times a batch, hence without a generator."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    found: list[torch.Tensor] = []
    if type(tree) is not tuple:
        kind = kind_of(tree)
        if kind is None:
            if others is not None and type(tree) not in CHILDLESS:
                others.append(tree)
            return found
        if others is not None:
            others += keys_of(tree)
        tree = kind.values(tree)
    for value in tree:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif type(value) not in CHILDLESS:
            try:
                found += tensors_of(value, others)
            except RecursionError:
                raise endless(value) from None
    return found


def keys_of(tree: Any) -> list:
    """Those of a mapping that may be, or hold, tensors."""
    return [key for key in tree if isinstance(key, torch.Tensor) or type(key) not in CHILDLESS] if isinstance(tree, Mapping) else []


def held_by(tree: Any) -> list[torch.Tensor]:
    """All tensors, and those in objects that are no containers, tensors too: attributes, slots, closures of functions, keys of
    dictionaries, and what a generator or another iterator still has to give. Modules and optimizers are the program's, whatever becomes
    of the batch."""
    rest: list[Any] = []
    found = tensors_of(tree, rest)
    for tensor in found:
        if has_attributes(tensor):
            rest += tensor.__dict__.values()
    seen: set[int] = set()
    for held in rest:  # which grows
        if len(seen) >= MOST_OBJECTS:
            warn(f"sluice.pipeline: a result leads to more than {MOST_OBJECTS} objects, behind which tensors are not held until its batch is "
                 "over; expected fewer, or tensors in containers")
            break
        if isinstance(held, torch.Tensor):
            found.append(held)
            if id(held) not in seen and has_attributes(held):
                seen.add(id(held))
                rest += held.__dict__.values()
        elif type(held) not in CHILDLESS and not isinstance(held, THE_PROGRAMS) and id(held) not in seen:
            seen.add(id(held))
            kind = kind_of(held)
            rest += parts_of_object(held) if kind is None else [*keys_of(held), *kind.values(held)]
    return found


def parts_of_object(held: Any) -> list:
    if isinstance(held, (set, frozenset, collections.deque)):
        return list(held)
    if isinstance(held, types.FunctionType):
        return [cell.cell_contents for cell in held.__closure__ or () if cell != types.CellType()] + list(held.__defaults__ or ())
    if isinstance(held, types.MethodType):
        return [held.__self__, held.__func__]
    if isinstance(held, types.GeneratorType):
        frame = held.gi_frame  # none once it has ended
        return [held.gi_yieldfrom, *frame.f_locals.values()] if frame is not None else []
    if isinstance(held, Iterator) and type(held).__module__ in ("builtins", "itertools") or isinstance(held, MappingView):
        return gc.get_referents(held)  # such as `zip` of two lists, which Python has no other words for
    if isinstance(held, functools.partial):
        return [held.func, *held.args, *held.keywords.values()]
    parts = list(attribute_of(held, "__dict__", {}).values())
    for base in type(held).__mro__:
        names = base.__dict__.get("__slots__", ())
        parts += [attribute_of(held, name) for name in ((names,) if isinstance(names, str) else names)]
    return parts


def structure_of(tree: Any) -> Any:
    """What two trees share whose leaves are in the same places: the types of containers, and their keys."""
    kind = kind_of(tree)
    if kind is None:
        return None
    return type(tree), kind.names(tree), tuple([structure_of(value) for value in kind.values(tree)])


def call(function: Callable, batch: Any) -> Any:
    """A tuple or list becomes the arguments, anything else the only one."""
    if isinstance(batch, (tuple, list)) and not hasattr(batch, "_fields"):
        return function(*batch)
    return function(batch)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is one block of numbers with strides: not nested, and not sparse."""
    return tensor.layout == torch.strided and not tensor.is_nested


def is_ordinary(tensor: torch.Tensor) -> bool:
    """Whether memory with strides is all of it. A class of the program's may have more, such as the format of boxes, and says itself what
    `to()` makes of that; what `torch.func` wraps has another's; what is quantized has a scale."""
    return type(tensor) in ORDINARY and is_plain(tensor) and not tensor.is_quantized and not is_wrapped(tensor)


def version_of(tensor: torch.Tensor) -> int:
    """How often PyTorch saw it written; of a tensor made under `inference_mode` that is not counted."""
    return 0 if tensor.is_inference() else tensor._version


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """NaNs of the same bits are the same."""
    if isinstance(a, FakeTensor) or isinstance(b, FakeTensor):
        raise TypeError("a FakeTensor has no numbers that could be compared; expected real tensors, or a loop that verifies nothing")
    if a.layout != b.layout or a.is_nested != b.is_nested or a.dtype != b.dtype:
        return False
    if not is_plain(a) or a.is_quantized or is_masked(a):  # which has no bytes that PyTorch would look at
        first, second = parts_of(a), parts_of(b)
        return len(first) == len(second) and a.dim() == b.dim() and all(map(same_bits, first, second))
    if a.shape != b.shape:
        return False
    if a.numel() == 0:
        return True
    if a._is_zerotensor() or b._is_zerotensor():  # a derivative forward, which has no memory
        a, b = a.clone(), b.clone()
    first, second = (t.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
                     for t in (a, b.to(a.device)))
    return torch.equal(first, second)


def parts_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Plain tensors that say all of a nested, sparse, quantized or masked one."""
    if is_masked(tensor):
        return [tensor._masked_data, tensor._masked_mask]
    tensor = tensor.detach()
    if tensor.is_quantized:
        return [tensor.int_repr(), tensor.dequantize()]
    if tensor.is_nested and tensor.layout == torch.jagged:
        return [part for part in (tensor.values(), tensor.offsets(), tensor.lengths()) if part is not None]
    if tensor.is_nested:
        return list(tensor.unbind())
    extents = torch.tensor(tensor.shape, device="cpu")  # whatever the program's default is
    if tensor.layout == torch.sparse_coo:
        return [extents, tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [extents, tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [extents, tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [tensor.to_dense()]

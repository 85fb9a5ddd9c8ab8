"""What a captured stage read on the host, and whether it is still so. Checked before each replay: a few dozen nanoseconds a
value, without Python code of its own for each."""

from __future__ import annotations

import functools
import itertools
import operator
from itertools import chain
from typing import Any

import torch
from torch._C._dynamo.guards import TensorGuards
from torch.utils._device import DeviceContext

ITEM, ATTRIBUTE, VALUES = operator.getitem, getattr, dict.values
ADDRESS = torch.Tensor.data_ptr

def modes_around() -> Any:
    """Those of functions and of operations that are on. One that `torch.device` or `torch.set_default_device` brings is the same for the
    same device."""
    if not any(length() for length in STACKS):
        return None
    modes = [torch._C._get_function_stack_at(place) for place in range(torch._C._len_torch_function_stack())]
    return [mode.device if type(mode) is DeviceContext else mode for mode in [*modes, *dispatch_modes()]] or None


def dispatch_modes() -> list:
    """Of the program's: those of another pipeline follow operations, and change none."""
    modes = [torch._C._get_dispatch_stack_at(place) for place in range(torch._C._len_torch_dispatch_stack())]
    return [mode for mode in modes if not type(mode).__module__.startswith("sluice.")]


# Of precisions, the getters by operation: those for all of them raise where a program sets one of them.
MODES = (*(getattr(torch._C, name) for name in (
    "is_grad_enabled", "is_inference_mode_enabled", "is_autocast_cache_enabled", "get_default_dtype", "_get_deterministic_algorithms",
    "_get_cudnn_enabled", "_get_cudnn_benchmark", "_get_cudnn_deterministic", "_get_flash_sdp_enabled", "_get_mem_efficient_sdp_enabled",
    "_get_math_sdp_enabled", "_get_cudnn_sdp_enabled", "_get_sdp_priority_order", "_get_math_sdp_allow_fp16_bf16_reduction",
    "_get_cublas_allow_fp16_reduced_precision_reduction", "_get_cublas_allow_bf16_reduced_precision_reduction",
    "_get_cublas_allow_fp16_accumulation", "is_anomaly_enabled")),
    functools.partial(torch._C._autograd._top_saved_tensors_default_hooks, False),
    *(functools.partial(torch._C._get_fp32_precision_getter, "cuda", operation) for operation in ("conv", "matmul")))
LOOKED_AT = (torch.Tensor, torch.nn.Parameter)
ANY_AUTOCAST, AUTOCAST, AUTOCAST_TYPE = torch._C._is_any_autocast_enabled, torch.is_autocast_enabled, torch.get_autocast_dtype
STACKS = (torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack)


def surroundings() -> list:
    """Modes that change what PyTorch's calls enqueue."""
    found: list = [mode() for mode in MODES]
    found += [AUTOCAST_TYPE(kind) if AUTOCAST(kind) else None for kind in ("cuda", "cpu")] if ANY_AUTOCAST() else [None, None]
    found.append(modes_around())
    return found


class Surroundings:
    """The modes, looked up once for all stages of a batch, as long as they are replayed."""

    def __init__(self) -> None:
        self.known: Any = None
        self.before: Any = None

    def now(self) -> list:
        if self.known is None:
            self.known = surroundings()
            if self.known == self.before:
                self.known = self.before  # an object that guards know
            self.before = self.known
        return self.known


class Guard:
    """Values by identity, since numbers do not change in place: lists and dictionaries also by size, tensors also by address."""

    def __init__(self) -> None:
        self.containers: list[Any] = []  # that have `keys`, whose values were `items`
        self.keys: list[Any] = []
        self.items: list[Any] = []
        self.item_names: list[str] = []
        self.objects: list[Any] = []  # that have `attributes`, whose values were `values`
        self.attributes: list[str] = []
        self.values: list[Any] = []
        self.value_names: list[str] = []
        self.of_kind: list[Any] = []  # objects of the classes `kinds`
        self.kinds: list[type] = []
        self.kind_names: list[str] = []
        self.whole: list[dict] = []  # dictionaries of which all values are looked at
        self.whole_sizes: list[int] = []
        self.whole_items: list[Any] = []
        self.whole_names: list[str] = []  # of each value
        self.empty: list[Any] = []
        self.empty_names: list[str] = []
        self.sized: list[Any] = []
        self.sizes: list[int] = []
        self.sized_names: list[str] = []
        self.lists_of: list[tuple[list, list[int], list, str]] = []
        self.sets: list[tuple[Any, frozenset, str]] = []
        self.tensors: list[torch.Tensor] = []
        self.addresses: list[int] = []
        self.tensor_names: list[str] = []
        self.looked_at: tuple[torch.Tensor, ...] = ()
        self.looks: list[tuple] = []
        self.check: Any = bool  # which is not called
        self.surroundings = surroundings()

    def item(self, container: Any, key: Any, value: Any, name: str) -> None:
        self.containers.append(container)
        self.keys.append(key)
        self.items.append(value)
        self.item_names.append(name)

    def dictionary(self, held: dict, name: str, names: Any = None) -> None:
        """All of its values, which are objects, and no numbers: cheaper than one by one."""
        self.size(held, name)
        if held:
            self.whole.append(held)
            self.whole_sizes.append(len(held))
            self.whole_items += held.values()
            self.whole_names += [f"{name}.{key}" for key in held] if names is None else names

    def members(self, held: list, name: str) -> None:
        """All members of a list: objects, and no numbers."""
        self.size(held, name)
        self.lists_of.append((held, list(map(id, held)), list(held), name))

    def attribute(self, owner: Any, attribute: str, value: Any, name: str) -> None:
        self.objects.append(owner)
        self.attributes.append(attribute)
        self.values.append(value)
        self.value_names.append(name)

    def kind(self, value: Any, name: str) -> None:
        self.of_kind.append(value)
        self.kinds.append(type(value))
        self.kind_names.append(name)

    def absent(self, container: Any, name: str) -> None:
        """A name that code looks up and does not find: that may be handled, and it may come."""
        self.attribute(Absence(container, name), "is_there", False, name)

    def size(self, container: Any, name: str) -> None:
        if len(container) == 0:
            self.empty.append(container)
            self.empty_names.append(name)
        else:
            self.sized.append(container)
            self.sizes.append(len(container))
            self.sized_names.append(name)

    def tensor(self, tensor: torch.Tensor, name: str) -> None:
        address = tensor.data_ptr()  # which a sparse one has none of: nothing is noted of it, then
        self.tensors.append(tensor)
        self.addresses.append(address)
        self.tensor_names.append(name)
        if type(tensor) in LOOKED_AT and tensor.layout is torch.strided and not tensor.is_nested:
            self.looked_at += (tensor,)
            self.looks.append((*look_of(tensor), name))
        elif tensor.requires_grad:
            self.attribute(tensor, "requires_grad", True, f"requires_grad of {name}")

    def look_at_tensors(self) -> None:
        """How they are from now on: shapes, strides, types, and whether they require gradients."""
        if self.looked_at:
            self.check = TensorGuards(*self.looked_at, dynamic_dims_sizes=[list(tensor.shape) for tensor in self.looked_at],
                                      dynamic_dims_strides=[list(tensor.stride()) for tensor in self.looked_at]).check

    def lists(self) -> tuple:
        """In the order of `Guard` in src/guards.hpp, which reads them as they are then."""
        return (self.containers, self.keys, self.items, self.objects, self.attributes, self.values, self.whole, self.whole_items, self.empty,
                self.sized, self.sizes, self.tensors, self.addresses, self.lists_of, self.sets, self.surroundings,
                self.check, self.looked_at, self.of_kind, self.kinds)

    def holds(self, around: Surroundings) -> bool:
        """Whether all is as it was. A number that was replaced by the same one is not; `difference` finds that out."""
        same = operator.is_
        try:
            if self.sized and list(map(len, self.sized)) != self.sizes or self.empty and any(self.empty):
                return False
            if self.keys and not all(map(same, map(ITEM, self.containers, self.keys), self.items)):
                return False
            if self.objects and not all(map(same, map(ATTRIBUTE, self.objects, self.attributes), self.values)):
                return False
            if list(map(type, self.of_kind)) != self.kinds:
                return False
            if self.whole and not all(map(same, chain.from_iterable(map(VALUES, self.whole)), self.whole_items)):
                return False
            if self.tensors and list(map(ADDRESS, self.tensors)) != self.addresses:
                return False
            if self.looked_at and not self.check(*self.looked_at):
                return False
            if self.lists_of and not all(list(map(id, now)) == then for now, then, _, _ in self.lists_of):
                return False
            if self.sets and not all(now == then for now, then, _ in self.sets):
                return False
            now = around.now()
            if now is not self.surroundings:
                if now != self.surroundings:
                    return False
                self.surroundings = now  # one object from now on
            return True
        except Exception:  # what was read is not there any more
            return False

    def difference(self) -> str:
        """The name of what changed, or nothing. A number that was replaced by the same one is taken note of."""
        if surroundings() != self.surroundings:
            return "a mode of PyTorch, such as autocast or no_grad"
        for place, (container, key, then) in enumerate(zip(self.containers, self.keys, self.items)):
            now = fetched(ITEM, container, key)
            if now is not then:
                if not same_value(now, then):
                    return self.item_names[place]
                self.items[place] = now
        for place, (owner, attribute, then) in enumerate(zip(self.objects, self.attributes, self.values)):
            now = fetched(ATTRIBUTE, owner, attribute)
            if now is not then:
                if not same_value(now, then):
                    return self.value_names[place]
                self.values[place] = now
        for value, kind, name in zip(self.of_kind, self.kinds, self.kind_names):
            if type(value) is not kind:
                return name
        for now, then, name in zip(chain.from_iterable(map(VALUES, self.whole)), self.whole_items, self.whole_names):
            if now is not then:
                return name
        for container, name in zip(self.empty, self.empty_names):
            if container:
                return name
        for container, size, name in zip(self.sized, self.sizes, self.sized_names):
            if len(container) != size:
                return name
        for tensor, address, name in zip(self.tensors, self.addresses, self.tensor_names):
            if tensor.data_ptr() != address:
                return f"the memory of {name}"
        if self.looked_at and not self.check(*self.looked_at):
            for tensor, (needs_gradient, *then, name) in zip(self.looked_at, self.looks):
                now = look_of(tensor)
                if now[0] is not needs_gradient:
                    return f"requires_grad of {name}"
                if [*now[1:]] != then:
                    return f"the shape, strides or type of {name}"
            return "a mode of PyTorch, such as autocast or no_grad"
        for held, ids, _, name in self.lists_of:
            if list(map(id, held)) != ids:
                return name
        for now, then, name in self.sets:
            if now != then:
                return name
        return ""

    def restore(self) -> None:
        """Puts back values that a capture which came to nothing has changed."""
        for container, key, then in zip(self.containers, self.keys, self.items):
            if fetched(ITEM, container, key) is not then:
                put(operator.setitem, container, key, then)
        for owner, attribute, then in zip(self.objects, self.attributes, self.values):
            if fetched(ATTRIBUTE, owner, attribute) is not then:
                put(setattr, owner, attribute, then)
        for value, kind in zip(self.of_kind, self.kinds):
            if type(value) is not kind:
                put(setattr, value, "__class__", kind)
        for held, _, members, _ in self.lists_of:
            held[:] = members
        then = iter(self.whole_items)
        for held, size in zip(self.whole, self.whole_sizes):
            held.update(zip(list(held), itertools.islice(then, size)))
        for container in self.empty:
            container.clear()
        for container, size in zip(self.sized, self.sizes):
            if isinstance(container, list):
                del container[size:]
            elif isinstance(container, dict) and len(container) > size:
                known = {key for owner, key in zip(self.containers, self.keys) if owner is container}
                for key in [key for key in container if key not in known]:
                    if len(container) > size:
                        del container[key]


class Absence:
    """Of a name, which a guard looks at as an attribute."""

    def __init__(self, container: Any, name: str) -> None:
        self.container, self.name = container, name

    @property
    def is_there(self) -> bool:
        return self.name in self.container


class LruCache:
    """Of a function: what it has computed by now, which a guard looks at as an attribute."""

    def __init__(self, function: Any) -> None:
        self.info = function.cache_info
        self.then = self.info()[1:]

    @property
    def has_changed(self) -> bool:
        return self.info()[1:] != self.then


def look_of(tensor: torch.Tensor) -> tuple:
    return tensor.requires_grad, tensor.shape, tensor.stride(), tensor.dtype


class Missing:
    """In place of what is not there."""


def fetched(get: Any, owner: Any, key: Any) -> Any:
    try:
        return get(owner, key)
    except Exception:
        return Missing


def put(work: Any, owner: Any, key: Any, value: Any) -> None:
    try:
        work(owner, key, value)
    except (AttributeError, TypeError, ValueError, IndexError):
        pass  # of a kind that cannot be set


def same_value(now: Any, then: Any) -> bool:
    """Of numbers and the like, which do not change in place. Objects are the same only where they are one."""
    if type(now) is not type(then):
        return False
    if isinstance(now, float):
        return now.hex() == then.hex()
    if isinstance(now, (int, str, bytes, bool, torch.dtype, torch.device)):
        return now == then
    if isinstance(now, tuple):
        return len(now) == len(then) and all(a is b or same_value(a, b) for a, b in zip(now, then))
    # A method is made anew each time that it is asked for.
    return callable(now) and hasattr(now, "__func__") and now.__func__ is then.__func__ and now.__self__ is then.__self__

"""A stage as CUDA graphs: one for each slot, since each reads and writes that slot's memory.

A form of batches (keys, nesting, shapes, numbers) becomes graphs in steps: one runs eagerly; two are watched, which tells
what the stage reads and does; one must leave all of that as it was; then a slot whose tensors have lain in one place twice is
captured, and its first two replays are compared with eager runs. Before each replay the guard is asked.
"""

from __future__ import annotations

import collections
import time
import weakref
from typing import Any, Callable, Optional, Sequence

import torch

from sluice.pipelines.copies import copied_where
from sluice.pipelines.devices import Device
from sluice.pipelines.forms import Form
from sluice.pipelines.guards import Surroundings
from sluice.pipelines.holders import Baseline, allowed
from sluice.pipelines.reach import Reach
from sluice.pipelines.signatures import signature_of
from sluice.pipelines.trees import call, has_attributes, held_by, is_ordinary, map_tensors, same_bits, tensors_of
from sluice.pipelines.undo import Undo
from sluice.pipelines.watching import Watch, bytes_of, storages_of

MOST_FORMS = 8  # that are looked after, and graphs of a slot
MOST_GRAPHS = 4
SEEN = object()  # in place of a graph: the tensors have lain there once


class Captured:
    def __init__(self, graph: Any, outputs: Any, gradients: list) -> None:
        self.graph, self.outputs, self.gradients = graph, outputs, gradients
        self.is_looked_at = True  # its first two replays may be compared with eager runs


class Recent:
    """The last replay of a slot: the next is the same, unless something changes."""

    def __init__(self, inputs: Any, signature: tuple, form: Form, found: Captured) -> None:
        self.signature, self.form, self.found = signature, form, found
        self.look_at(inputs)

    def look_at(self, inputs: Any) -> None:
        flat = inputs if type(inputs) is tuple else (inputs,)
        self.kind = type(inputs)
        # A stage before it that is a graph gives the same objects each time. To hold them would be to keep them.
        self.inputs = [weakref.ref(tensor) for tensor in flat] if all(type(t) is torch.Tensor for t in flat) else None

    def is_of(self, inputs: Any) -> bool:
        if type(inputs) is not self.kind:
            return False
        if self.inputs is not None:
            flat = inputs if self.kind is tuple else (inputs,)
            if len(flat) == len(self.inputs):
                for tensor, known in zip(flat, self.inputs):
                    if known() is not tensor:
                        break
                else:
                    return True
        if signature_of(inputs) != self.signature:
            return False
        self.look_at(inputs)  # in case that these are the ones from now on
        return True


class StageGraphs:
    """Runs a stage for a slot: eagerly at first, then as a graph, which is replayed for every batch whose tensors lie where they
    lay then, as long as the guard holds. Other batches, such as a shorter last one, run eagerly."""

    def __init__(self, given: Any, device: Device, slots: int) -> None:
        self.given = given
        self.function = given.function  # or what is called in its place, where it runs eagerly
        self.device = device
        self.is_last = False  # its results are copied before the stage runs again
        self.around = Surroundings()  # that all stages of a pipeline share
        self.careful = False  # only what is guarded in full, whatever the stage says; each graph is compared
        self.graphs: list[dict] = [{} for _ in range(slots)]
        self.forms: dict[tuple, Form] = {}
        self.kept: list[Any] = [None] * slots  # fixed memory for what an eager stage returns
        self.recent: list[Optional[Recent]] = [None] * slots
        self.memory: dict[bool, Any] = {}  # that graphs share, and for graphs of their own
        self.eager = self.replays = 0
        self.refusal = ""
        self.changes: collections.Counter = collections.Counter()  # why graphs were dropped
        self.dropped = 0  # how often graphs were

    def again(self, slot: int, inputs: Any) -> Optional[Captured]:
        """The graph that was replayed for the slot's batch before, once more, if it is that of this batch."""
        recent = self.recent[slot]
        if recent is not None and recent.is_of(inputs) and recent.form.reach.guard.holds(self.around):
            self.replayed(recent.form, recent.found)
            return recent.found
        return None

    def run(self, slot: int, stream: Any, inputs: Any, written: Sequence[Baseline] = ()) -> tuple[Any, bool]:
        """Else: what the stage returned, and whether it lies in memory that the slot's next batch overwrites. `written` is such memory of
        the batch and of earlier stages, which a graph may hold."""
        self.around.known = None  # Python code may run
        if self.given.graph is False:
            return self.apart(slot, inputs)
        signature = signature_of(inputs)
        if signature is None:
            self.refusal = self.refusal or "a batch has values of which it is not known when they are the same"
            return self.eagerly(inputs)
        form = self.forms.get(signature[0])
        if form is None:
            if len(self.forms) >= MOST_FORMS:
                self.refusal = self.refusal or f"batches come in more than {MOST_FORMS} forms"
                return self.eagerly(inputs)
            form = self.forms[signature[0]] = Form(signature[0])
        found = self.graphs[slot].get(signature)
        if form.reach is not None and not form.refusal and not form.reach.guard.holds(Surroundings()):
            changed = form.reach.guard.difference()
            if changed:
                self.drop(form, changed)
                found = None
        if isinstance(found, Captured):
            self.recent[slot] = Recent(inputs, signature, form, found)
            if found.is_looked_at:  # other graphs have been in its memory since the first replay
                found.is_looked_at = False
                return self.compared_replay(form, found, inputs)
            return self.replayed(form, found)
        self.recent[slot] = None
        return self.otherwise(slot, stream, inputs, signature, form, written)

    def replayed(self, form: Form, found: Captured) -> tuple[Any, bool]:
        self.replays += 1
        form.replays += 1
        found.graph.replay()
        for leaf, gradient in found.gradients:
            leaf.grad = gradient
        return found.outputs, True

    def otherwise(self, slot: int, stream: Any, inputs: Any, signature: tuple, form: Form,
                  written: Sequence[Baseline]) -> tuple[Any, bool]:
        """No graph yet: the next step towards one."""
        form.batches += 1
        if form.refusal or form.batches <= form.wait:
            return self.eagerly(inputs)
        if form.reach is None:
            return self.watched(form, inputs)
        place = self.graphs[slot]
        if not form.is_steady or signature not in place:
            if len(place) >= MOST_GRAPHS and not self.make_room(place, form):
                return self.eagerly(inputs)
            place[signature] = SEEN
            outputs = self.eagerly(inputs)
            changed = form.reach.guard.difference()
            form.is_steady = True
            if changed:
                self.refuse(form, f"it changes {changed}")
            return outputs
        kinds = {tensor.device.type for tensor in tensors_of(inputs)} - {self.device.device.type}
        if kinds and (self.careful or self.given.graph is None):  # whose numbers would become the graph's
            self.refuse(form, f"it is not guarded in full: it is given a tensor of the device '{kinds.pop()}'")
            return self.eagerly(inputs)
        with allowed(written):
            captured = self.captured(stream, inputs, form)
        if captured is None:
            return self.eagerly(inputs)
        place[signature] = captured
        result = self.compared_replay(form, captured, inputs)
        self.device.release()  # what eager runs worked in: the graph has memory of its own
        return result

    def make_room(self, place: dict, form: Form) -> bool:
        """Forgets what has not become a graph, or a graph of the same form, whose tensors lie elsewhere now."""
        for signature, found in place.items():
            if found is SEEN or signature[0] == form.key:
                self.device.synchronize()  # it may be under way
                del place[signature]
                return True
        return False

    def eagerly(self, inputs: Any) -> tuple[Any, bool]:
        self.eager += 1
        return call(self.function, inputs), False

    def apart(self, slot: int, inputs: Any) -> tuple[Any, bool]:
        """A stage with `graph=False`. What carries autograd's history is not copied, since the copy would have none, nor what is of the
        program's classes, or held by objects of these."""
        self.eager += 1
        outputs = call(self.function, inputs)
        tensors = tensors_of(outputs)
        own = [tensor for tensor in tensors if tensor.requires_grad or has_attributes(tensor) or not is_ordinary(tensor)]
        if own or len(held_by(outputs)) > len(tensors):
            return outputs, False
        return self.fixed(slot, outputs), True

    # What is known before a capture.

    def watched(self, form: Form, inputs: Any) -> tuple[Any, bool]:
        """An eager run that tells what the stage reads and does; the one before tells where gradients may be, and whether
        torch.compile is in it."""
        import torch._dynamo  # noqa: F401: else the stage's first backward pass imports it, and changes what is being looked at

        given, device = self.given.function, self.device.device
        first, form.first = form.first, None
        gradients = {} if first is None else {id(leaf): leaf.grad for leaf in first.leaves()}
        with Watch(device, operations=first is not None and not first.compiled) as watch:
            outputs = self.eagerly(inputs)
        reach = Reach(given, watch, device)
        if first is None:
            form.first = reach
            return outputs
        form.reach, form.sets_gradients = reach, watch.backward
        form.look_at_gradients(watch, gradients)
        form.look_at_memory(watch, inputs, device)
        form.look_at_results(watch, inputs, outputs[0], self.is_last)
        reason = form.reason_against(watch, inputs, outputs[0], self.is_last, device)
        if not reason and reach.notes and (self.careful or self.given.graph is None):
            reason = f"it is not guarded in full: {'; '.join(reach.notes)}"
        if reason:
            self.refuse(form, reason)
        return outputs

    def refuse(self, form: Form, reason: str) -> None:
        form.refusal = self.refusal = " ".join(reason.split())[:300]
        form.first = form.reach = None  # which hold what the stage reads
        form.written = []
        self.clear(form)

    def stop(self, reason: str) -> None:
        """There are no graphs from now on."""
        for form in self.forms.values():
            self.refuse(form, reason)
        self.refusal = reason
        self.dropped += 1
        self.kept = [None] * len(self.kept)

    def drop(self, form: Form, changed: str) -> None:
        """What was captured is no longer so."""
        self.changes[changed] += 1
        self.clear(form)
        form.forget()

    def clear(self, form: Form) -> None:
        self.device.synchronize()  # graphs may be under way
        self.dropped += 1
        self.recent = [None] * len(self.recent)
        for place in self.graphs:
            for signature in [signature for signature in place if signature[0] == form.key]:
                del place[signature]

    # Captures.

    def captured(self, stream: Any, inputs: Any, form: Form) -> Optional[Captured]:
        # What the stage passes through is kept with the graph, and must not count as the program's.
        reach = form.reach
        assert reach is not None
        shares = self.is_last or form.results is not None
        if shares not in self.memory:
            self.memory[shares] = self.device.graph_memory(shares)
        aliases = map_tensors(lambda tensor: tensor.detach(), inputs)
        undo = Undo(reach)
        watch = Watch(self.device.device, operations=False, captures=True)

        given = {address for _, address in storages_of(tensors_of(aliases))}
        places = iter([torch.empty_like(like, device=self.device.device) for like in form.results or ()])

        def copied(tensor: torch.Tensor) -> torch.Tensor:
            return tensor if tensor.untyped_storage().data_ptr() in given else next(places).copy_(tensor.detach())

        def work() -> Any:
            with watch:
                outputs = call(self.given.function, aliases)
            return outputs if form.results is None else map_tensors(copied, outputs)

        try:
            graph, outputs = self.device.capture(stream, work, self.memory[shares], reach.generators)
        except Exception as error:  # whatever a stage does that cannot be captured
            reason = str(error)
        except BaseException:  # an interrupt, which is the loop's affair
            undo.undo()
            raise
        else:
            changed = reach.guard.difference()
            other = [key for key in watch.codes if key not in reach.watch.codes]
            if not changed and not other:
                outputs = map_tensors(lambda tensor: tensor.detach(), outputs)
                return Captured(graph, outputs, self.gradients_set(form, undo))
            reason = f"it changes {changed}" if changed else f"it took another way, through {other[0][2]}"
            del graph, outputs
        self.refuse(form, reason)
        undo.undo()
        return None

    @staticmethod
    def gradients_set(form: Form, undo: Undo) -> list:
        """What a replay leaves as gradients: the next slot's graph leaves others."""
        if not form.sets_gradients:
            return []
        return [(leaf, leaf.grad) for leaf, before in undo.gradients if leaf.grad is not before]

    def compared_replay(self, form: Form, captured: Captured, inputs: Any) -> tuple[Any, bool]:
        """Runs the batch eagerly too, and compares bits. The batch counts once."""
        if captured.is_looked_at in form.compared and not self.careful or form.reach is None or form.reach.notes:
            return self.replayed(form, captured)
        given = tensors_of(inputs)
        written = [*form.written, *(bytes_of(given[place]) for place in form.written_inputs)]
        numbers = self.device.random_state(form.reach.generators)
        try:
            state = [memory.clone() for memory in written]
        except torch.OutOfMemoryError:
            return self.replayed(form, captured)

        def again() -> None:
            for memory, was in zip(written, state):
                memory.copy_(was)
            self.device.set_random_state(numbers)

        def eager() -> list[torch.Tensor]:
            outputs = call(self.given.function, inputs)
            return [tensor.detach().clone() for tensor in [*tensors_of(outputs), *written]]

        try:
            expected = eager()
        except torch.OutOfMemoryError:
            again()
            return self.replayed(form, captured)
        again()
        outputs, fixed = self.replayed(form, captured)
        found = [*tensors_of(outputs), *written]
        if same(found, expected):
            form.compared.add(captured.is_looked_at)
            return outputs, fixed
        counts = self.replays - 1, form.replays - 1

        def replay() -> list[torch.Tensor]:
            outputs, _ = self.replayed(form, captured)
            return [*tensors_of(outputs), *written]

        # What adds up in no fixed order gives other bits now and then, and beside another stage's work sooner than alone.
        is_near = near(found, expected)
        is_wrong = repeats(eager, again, expected, 32) and not (is_near and repeats(replay, again, expected, 8))
        again()
        self.replays, form.replays = counts
        if is_wrong:
            self.refuse(form, "its graph gave other bits than its Python code")
            return self.eagerly(inputs)
        form.compared.add(captured.is_looked_at)
        return self.replayed(form, captured)

    # Results.

    def fixed(self, slot: int, outputs: Any) -> Any:
        """Copied to memory that stays, where later stages' graphs find it."""
        tensors = tensors_of(outputs)
        kept = self.kept[slot]
        if kept is None or [(t.shape, t.dtype) for t in kept] != [(t.shape, t.dtype) for t in tensors]:
            if kept is not None:  # a shorter batch: its readers run eagerly
                return outputs
            kept = self.kept[slot] = [torch.empty_like(t) for t in tensors]
        places = iter(kept)

        def copied(tensor: torch.Tensor) -> torch.Tensor:
            place = next(places)
            place.copy_(tensor.detach())
            return place

        return map_tensors(copied, outputs)

    @staticmethod
    def copied(outputs: Any) -> Any:
        if type(outputs) is torch.Tensor and not outputs.requires_grad and outputs.is_contiguous():
            return outputs.clone()
        return copied_where(lambda tensor: True, map_tensors(lambda tensor: tensor.detach() if tensor.requires_grad else tensor, outputs))


def near(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    """Whether they are the same but for the rounding of sums."""
    def is_near(a: torch.Tensor, b: torch.Tensor) -> bool:
        if not a.is_floating_point() or a.shape != b.shape or a.numel() == 0:
            return same_bits(a, b)
        return bool(((a.double() - b.double()).abs().max() <= 1e-4 * b.double().abs().max()).item())

    return len(first) == len(second) and all(is_near(a, b) for a, b in zip(first, second))


def repeats(run: Callable[[], list[torch.Tensor]], again: Callable[[], None], expected: list[torch.Tensor], most: int) -> bool:
    """Whether a stage gives the same bits each of `most` times, or for a second."""
    begin = time.monotonic()
    for runs in range(most):
        again()
        try:
            if not same(run(), expected):
                return False
        except torch.OutOfMemoryError:
            return True
        if runs > 0 and time.monotonic() > begin + 1:
            break
    return True


def same(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return len(first) == len(second) and all(same_bits(a, b) for a, b in zip(first, second))

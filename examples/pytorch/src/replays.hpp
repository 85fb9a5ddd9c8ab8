/// \file
/// Whole batches of a pipeline all of whose stages are graphs: `submit_graphed` of python/sluice/pipelines/submission.py, once a slot's graphs are
/// there and nothing changes. No Python code runs.
#pragma once

#include "flow.hpp"
#include "guards.hpp"

namespace sluice_flow {

/// Of a slot: what is as it was when the graphs were replayed last; see python/sluice/pipelines/chains.py.
struct Chain {
    enum { kind, targets, watched, stages, outputs, results, count };
    PyObject* tuple;

    PyObject* operator[](int place) const { return item(tuple, place); }
};

/// A tensor of the slot's memory, or of a graph's: where it lies if it is contiguous, or 0; the strides of what is copied to it, and its
/// bytes if it is contiguous, too, or -1.
struct Fixed {
    enum { tensor, dtype, shape, address, strides, bytes };
};

/// A stage: its graph, or what replays it where that is more than a launch; its guard; gradients that it leaves; its stream.
struct Replayed {
    enum { graph, replay, guard, gradients, stream };
};

/// Whether the pipeline alone holds the slot's memory.
inline bool is_free(PyObject* watched) {
    for (std::intptr_t i = 0; i < size(watched); i += 2)
        if (number(Ref::taken(PyObject_CallFunctionObjArgs(words[Word::use_count], item(watched, i), nullptr))
                       .get()) != number(item(watched, i + 1)))
            return false;
    return true;
}

/// Whether a batch's tensor, or constant, is like the one that the graphs were made for.
inline bool fits(PyObject* leaf, PyObject* target) {
    if (!is_tensor(leaf))
        return size(target) == 1 && leaf->type == item(target, 0)->type && is_equal(leaf, item(target, 0));
    return size(target) > 1 && attribute(leaf, words.dtype).get() == item(target, Fixed::dtype) &&
           !is_true(attribute(leaf, words.requires_grad)) &&
           is_equal(attribute(leaf, words.shape).get(), item(target, Fixed::shape)) &&
           is_equal(called(leaf, words.stride).get(), item(target, Fixed::strides));
}

inline bool fits(const Chain& chain, PyObject* batch) {
    PyObject* const targets = chain[Chain::targets];
    if (batch->type != chain[Chain::kind])
        return false;
    if (is_tensor(batch))
        return fits(batch, item(targets, 0));
    if (size(batch) != size(targets))
        return false;
    for (std::intptr_t i = 0; i < size(targets); ++i)
        if (!fits(item(batch, i), item(targets, i)))
            return false;
    return true;
}

/// The copy of a tensor, which the slot holds until it is done.
inline void fill(PyObject* versions, PyObject* held, std::intptr_t slot, PyObject* leaf, PyObject* target,
                 cudaStream_t stream) {
    if (!is_tensor(leaf))
        return;
    hold_source(held, versions, leaf, slot);
    const long long bytes = number(item(target, Fixed::bytes)); // all else is as `fits` found
    if (bytes >= 0 && is_true(attribute(leaf, words.is_cpu)) && !is_true(called(leaf, words.is_neg)))
        copy_to(PyLong_AsVoidPtr(item(target, Fixed::address)), leaf, static_cast<std::size_t>(bytes),
                stream);
    else
        Ref::taken(PyObject_CallMethodObjArgs(item(target, Fixed::tensor), words.copy.get(), leaf,
                                              words[Word::yes], nullptr));
}

inline void replay(const Way& way, Steps& steps, PyObject* stage, std::intptr_t place) {
    PyObject* const graph = item(stage, Replayed::graph);
    if (graph != words[Word::none]) {
        const auto stream = steps.stream_of(static_cast<std::int32_t>(number(item(stage, Replayed::stream))));
        require(cudaGraphLaunch(static_cast<cudaGraphExec_t>(PyLong_AsVoidPtr(graph)), stream));
    } else {
        try {
            Ref::taken(PyObject_CallFunctionObjArgs(item(stage, Replayed::replay), nullptr));
        } catch (Raised) {
            put(way[Way::state], 0, Ref::taken(PyLong_FromLongLong(place)));
            throw;
        }
    }
    PyObject* const gradients = item(stage, Replayed::gradients);
    for (std::intptr_t i = 0; i < size(gradients); i += 2)
        check(PyObject_SetAttr(item(gradients, i), words.grad.get(), item(gradients, i + 1)));
}

/// A copy of a result, which is the consumer's to keep.
inline Ref result(const Way& way, PyObject* output, cudaStream_t stream) {
    if (size(output) == 1)
        return Ref::another(item(output, 0)); // a constant
    void* const from = PyLong_AsVoidPtr(item(output, Fixed::address));
    Source source{};
    if (from != nullptr && source.take(item(output, Fixed::dtype), item(output, Fixed::shape))) {
        void* to = nullptr;
        Ref made = way.allocated(source, to);
        if (made.get() != nullptr) {
            if (source.bytes != 0)
                require(cudaMemcpyAsync(to, from, source.bytes, cudaMemcpyDeviceToDevice, stream));
            return made;
        }
    }
    return called(item(output, Fixed::tensor), words.clone);
}

inline Ref results(const Way& way, const Chain& chain, cudaStream_t stream) {
    PyObject* const outputs = chain[Chain::outputs];
    PyObject* const kind = chain[Chain::results];
    if (kind == words.tensor)
        return result(way, item(outputs, 0), stream);
    const std::intptr_t count = size(outputs);
    Ref made = Ref::taken(kind == words.tuple ? PyTuple_New(count) : PyList_New(count));
    for (std::intptr_t i = 0; i < count; ++i) {
        Ref one = result(way, item(outputs, i), stream);
        check(kind == words.tuple ? PyTuple_SetItem(made.get(), i, one.release())
                                  : PyList_SetItem(made.get(), i, one.release()));
    }
    return made;
}

/// Whether the graphs would compute what the stages' Python code does.
inline bool holds(const Chain& chain) {
    const Modes modes;
    PyObject* const stages = chain[Chain::stages];
    for (std::intptr_t place = 0; place < size(stages); ++place)
        if (!Guard{item(item(stages, place), Replayed::guard)}.holds(modes))
            return false;
    return true;
}

/// `graphed(way, index, slot, batch, reads, chain)` as `overlapped`.
inline Ref graphed(PyObject* const* arguments) {
    const Way way{arguments[0]};
    const Chain chain{arguments[5]};
    const std::intptr_t slot = number(arguments[2]);
    PyObject* const batch = arguments[3];
    if (!is_free(chain[Chain::watched]) || !is_plain(batch, way[Way::versions]) || !fits(chain, batch) ||
        !holds(chain))
        return Ref::another(words[Word::unhandled]);
    Steps& steps = way.plan();
    const Turn turn{item(way[Way::turns], slot)};
    begin_batch(steps, turn);
    const Over over{way};
    way.begin_slot(slot, arguments[1]);
    PyObject* const held = item(way[Way::held], slot);
    forget_sources(held, way[Way::versions], slot);
    const cudaStream_t copies = steps.stream_of(static_cast<std::int32_t>(turn[Turn::copies]));
    if (is_tensor(batch))
        fill(way[Way::versions], held, slot, batch, item(chain[Chain::targets], 0), copies);
    else
        for (std::intptr_t i = 0; i < size(batch); ++i)
            fill(way[Way::versions], held, slot, item(batch, i), item(chain[Chain::targets], i), copies);
    PyObject* const stages = chain[Chain::stages];
    const std::intptr_t count = size(stages);
    for (std::intptr_t place = 0; place < count; ++place) {
        const int moment = turn[Turn::first_stage + place];
        if (moment >= 0)
            require(steps.run(moment));
        free_made(way, place, slot, place + 1 == count);
        replay(way, steps, item(stages, place), place);
    }
    const auto last = static_cast<std::int32_t>(number(item(item(stages, count - 1), Replayed::stream)));
    Ref data = results(way, chain, steps.stream_of(last));
    put(item(way[Way::made], count - 1), slot, storages_in(data.get()));
    require(steps.run(turn[arguments[4] == words[Word::none] ? Turn::end : Turn::end_and_read]));
    over.finish();
    put(chain[Chain::count], 0, Ref::taken(PyLong_FromLongLong(number(item(chain[Chain::count], 0)) + 1)));
    return data;
}

} // namespace sluice_flow

/// \file
/// Batches of `prefetch`: what python/sluice/pipelines/prefetch.py does for any batch, for flat ones like the slot's before.
#pragma once

#include "replays.hpp"

namespace sluice_flow {

/// Of a `Prefetch`; see `ready` there.
struct Fetch {
    enum { steps, moments, sources, versions, targets, storages, inference };
    PyObject* tuple;

    PyObject* operator[](int place) const { return item(tuple, place); }
    Steps& plan() const { return *static_cast<Steps*>(PyLong_AsVoidPtr((*this)[steps])); }
};

/// Of a slot: a moment before the copy, or -1 where that is on the caller's stream; and one after it, with or without reading what comes next.
struct Placing {
    enum { begin, end, end_and_read };
};

/// Whether the consumer holds none of the slot's memory.
inline bool is_left(PyObject* storages) {
    for (std::intptr_t i = 0; i < size(storages); ++i) {
        const Ref cdata = attribute(item(item(storages, i), 0), words.cdata);
        const Ref count =
            Ref::taken(PyObject_CallFunctionObjArgs(words[Word::use_count], cdata.get(), nullptr));
        if (number(count.get()) != number(item(item(storages, i), 1)))
            return false;
    }
    return true;
}

/// Whether a batch is like the one before it in its slot.
inline bool is_like(PyObject* target, PyObject* batch) {
    if (target == words[Word::none] || batch->type != item(target, 0) || !is_flat(batch) ||
        size(batch) != size(item(target, 1)))
        return false;
    for (std::intptr_t i = 0; i < size(batch); ++i) {
        PyObject* const leaf = item(batch, i);
        PyObject* const fixed = item(item(target, 1), i);
        if (is_tensor(leaf) ? size(fixed) == 0 || !fits(leaf, fixed) : size(fixed) != 0)
            return false;
    }
    return true;
}

/// `prefetched(fetch, slot, batch, reads, other)` enqueues the copy of a batch into its slot, and returns what it will be; or `unhandled`,
/// with nothing done. `other` is the slot, if its batch before must have been given up, or -1.
inline Ref prefetched(PyObject* const* arguments) {
    const Fetch fetch{arguments[0]};
    const std::intptr_t slot = number(arguments[1]);
    const std::intptr_t other = number(arguments[4]);
    PyObject* const batch = arguments[2];
    PyObject* const target = item(fetch[Fetch::targets], slot);
    if (!is_like(target, batch) || !is_plain(batch, fetch[Fetch::versions]) ||
        (other >= 0 && !is_left(item(fetch[Fetch::storages], other))) ||
        is_true(Ref::taken(PyObject_CallFunctionObjArgs(fetch[Fetch::inference], nullptr))))
        return Ref::another(words[Word::unhandled]);
    Steps& steps = fetch.plan();
    PyObject* const moments = item(fetch[Fetch::moments], slot);
    wait_for(steps, static_cast<int>(slot));
    const auto begin = static_cast<int>(number(item(moments, Placing::begin)));
    require(begin < 0 ? steps.enter_device() : steps.enter());
    if (begin >= 0)
        require(steps.run(begin));
    const cudaStream_t stream = begin < 0 ? steps.callers : steps.streams[0];
    PyObject* const sources = item(fetch[Fetch::sources], slot);
    forget_sources(sources, fetch[Fetch::versions], slot);
    std::intptr_t place = 0;
    Ref result = mapped(batch, [&](PyObject* leaf) {
        PyObject* const fixed = item(item(target, 1), place++);
        if (!is_tensor(leaf))
            return Ref::another(leaf);
        Ref alias = called(item(fixed, Fixed::tensor), words.detach); // so that a reference to it is found
        fill(fetch[Fetch::versions], sources, slot, leaf, fixed, stream);
        return alias;
    });
    require(steps.run(static_cast<int>(
        number(item(moments, is_true(Ref::another(arguments[3])) ? Placing::end_and_read : Placing::end)))));
    require(steps.back());
    return result;
}

} // namespace sluice_flow

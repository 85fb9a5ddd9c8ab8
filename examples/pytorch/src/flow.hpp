/// \file
/// Whole batches of a pipeline: what python/sluice/pipelines/submission.py does for a batch of any kind, for flat ones of tensors. So the only
/// Python code of a batch is that of the stages. Objects are handed over with each call, in tuples that Python holds: a pipeline that
/// its stages refer to is found by the garbage collector.
#pragma once

#include "copies.hpp"
#include "steps.hpp"
#include "words.hpp"

namespace sluice_flow {

/// Of a pipeline, for one plan; see `way_of` in layout.py.
struct Way {
    enum {
        steps,
        turns,
        functions,
        made,
        held,
        fresh,
        batches,
        versions,
        late,
        device,
        state,
        device_type,
        device_index
    };
    PyObject* tuple;

    PyObject* operator[](int place) const { return item(tuple, place); }
    Steps& plan() const { return *static_cast<Steps*>(PyLong_AsVoidPtr((*this)[steps])); }

    /// Memory for a copy on the device, at `address`.
    Ref allocated(const Source& source, void*& address) const {
        return source.allocated(static_cast<std::int32_t>(number((*this)[device_type])),
                                static_cast<std::int32_t>(number((*this)[device_index])), address);
    }

    /// A batch has the slot now. Memory of the one before it goes, but for what is still referred to.
    void begin_slot(std::intptr_t slot, PyObject* index) const {
        append_held((*this)[late], item((*this)[fresh], slot));
        put((*this)[fresh], slot, Ref::another(words[Word::empty]));
        put((*this)[batches], slot, Ref::another(index));
    }
};

/// What was late before this batch: by its end, what still refers to it keeps it.
class Over {
public:
    explicit Over(const Way& way) : way_(way), storages_(Ref::taken(PyList_AsTuple(way[Way::late]))) {}

    void finish() const {
        PyObject* const storages = storages_.get();
        check(PyList_SetSlice(way_[Way::late], 0, size(storages), nullptr));
        for (std::intptr_t i = 0; i < size(storages); ++i)
            if (is_held(item(storages, i))) {
                put(way_[Way::state], 1, storages_);
                return;
            }
    }

private:
    Way way_;
    Ref storages_;
};

/// Of a slot: moments of its begin, its end, its end where a result is read, and of each stage, or -1; an event, and the stream of copies.
struct Turn {
    enum { begin, copied, end, end_and_read, copies, first_stage };
    PyObject* tuple;

    int operator[](std::intptr_t place) const { return static_cast<int>(number(item(tuple, place))); }
};

/// A key of a dictionary of tensors.
inline Ref key_of(PyObject* object) { return Ref::taken(PyLong_FromVoidPtr(object)); }

/// The value of a key, or null.
inline PyObject* find(PyObject* dictionary, PyObject* key) {
    PyObject* const found = PyDict_GetItemWithError(dictionary, key);
    if (found == nullptr && PyErr_Occurred() != nullptr)
        throw Raised{};
    return found;
}

/// Of a tensor that is copied from: how often PyTorch saw it written, and the last slot that holds it.
struct Copied {
    enum { version, slot };
};

/// Whether a batch is one tensor, or a flat tuple or list of tensors and constants, none of which its loader has written since.
inline bool is_plain(PyObject* batch, PyObject* versions) {
    const auto is_fine = [&](PyObject* leaf) {
        if (!is_tensor(leaf))
            return PySet_Contains(words[Word::atoms], leaf->type) == 1;
        if (attribute(leaf, words.layout).get() != words.strided)
            return false;
        PyObject* const known = find(versions, key_of(leaf).get());
        return known == nullptr || number(item(known, Copied::version)) == number(version_of(leaf).get());
    };
    if (is_tensor(batch))
        return is_fine(batch);
    if (!is_flat(batch))
        return false;
    for (std::intptr_t i = 0; i < size(batch); ++i)
        if (!is_fine(item(batch, i)))
            return false;
    return true;
}

/// What was copied from for the slot's batch before has been copied. Of a tensor of several batches the last one's slot comes to this last.
inline void forget_sources(PyObject* held, PyObject* versions, std::intptr_t slot) {
    const std::intptr_t count = size(held);
    for (std::intptr_t i = 0; i < count; ++i) {
        const Ref key = key_of(item(held, i));
        PyObject* const known = find(versions, key.get());
        if (known != nullptr && number(item(known, Copied::slot)) == slot)
            check(PyDict_DelItem(versions, key.get()));
    }
    check(PyList_SetSlice(held, 0, count, nullptr));
}

/// Of one whose version is the one that is known, if any is.
inline void hold_source(PyObject* held, PyObject* versions, PyObject* leaf, std::intptr_t slot) {
    const Ref copied = Ref::taken(PyTuple_New(2));
    check(PyTuple_SetItem(copied.get(), Copied::version, version_of(leaf).release()));
    check(PyTuple_SetItem(copied.get(), Copied::slot, Ref::taken(PyLong_FromLongLong(slot)).release()));
    check(PyDict_SetItem(versions, key_of(leaf).get(), copied.get()));
    check(PyList_Append(held, leaf));
}

/// On the host, without the interpreter's lock.
inline void wait_for(Steps& steps, int event) {
    const int found = steps.is_not_over(event);
    if (found != sluice_steps::not_yet)
        return require(found);
    void* const thread = PyEval_SaveThread();
    const int waited = cudaEventSynchronize(steps.events[static_cast<std::size_t>(event)]);
    PyEval_RestoreThread(thread);
    require(waited);
}

/// The begin of a batch, which waits for what its slot was used for.
inline void begin_batch(Steps& steps, const Turn& turn) {
    wait_for(steps, turn[Turn::copied]);
    require(steps.enter());
    require(steps.run(turn[Turn::begin]));
}

/// A tensor of the batch on the device, in memory of its own.
inline Ref copied(const Way& way, PyObject* leaf, cudaStream_t stream) {
    Source source{};
    if (source.look_at(leaf)) {
        void* address = nullptr;
        Ref result = way.allocated(source, address);
        if (result.get() != nullptr) {
            copy_to(address, leaf, source.bytes, stream);
            return result;
        } // and otherwise PyTorch says why
    }
    const Ref arguments = Ref::taken(PyTuple_New(2));
    check(PyTuple_SetItem(arguments.get(), 0, Ref::another(leaf).release()));
    check(PyTuple_SetItem(arguments.get(), 1, Ref::another(way[Way::device]).release()));
    Ref moved = Ref::taken(PyObject_Call(words[Word::to], arguments.get(), words[Word::without_waiting]));
    return moved.get() == leaf ? called(leaf, words.clone) : moved;
}

inline Ref brought(const Way& way, PyObject* leaf, std::intptr_t slot, PyObject* fresh, cudaStream_t stream) {
    if (!is_tensor(leaf))
        return Ref::another(leaf);
    hold_source(item(way[Way::held], slot), way[Way::versions], leaf, slot);
    Ref moved = copied(way, leaf, stream);
    const Ref storages = storages_in(moved.get());
    for (std::intptr_t i = 0; i < size(storages.get()); ++i)
        check(PyList_Append(fresh, item(storages.get(), i)));
    return moved;
}

/// A batch of the same kind, of what `work` makes of each leaf.
template <class Work>
Ref mapped(PyObject* batch, const Work& work) {
    if (is_tensor(batch))
        return work(batch);
    const std::intptr_t count = size(batch);
    Ref result = Ref::taken(batch->type == words.tuple ? PyTuple_New(count) : PyList_New(count));
    for (std::intptr_t i = 0; i < count; ++i) {
        Ref leaf = work(item(batch, i));
        check(batch->type == words.tuple ? PyTuple_SetItem(result.get(), i, leaf.release())
                                         : PyList_SetItem(result.get(), i, leaf.release()));
    }
    return result;
}

inline Ref bring(const Way& way, PyObject* batch, std::intptr_t slot, cudaStream_t stream) {
    forget_sources(item(way[Way::held], slot), way[Way::versions], slot);
    const Ref fresh = Ref::taken(PyList_New(0));
    put(way[Way::fresh], slot, fresh);
    return mapped(batch, [&](PyObject* leaf) { return brought(way, leaf, slot, fresh.get(), stream); });
}

/// As `call` in trees.py.
inline Ref call(PyObject* function, PyObject* data) {
    if (is_tensor(data))
        return Ref::taken(PyObject_CallFunctionObjArgs(function, data, nullptr));
    if (data->type == words.tuple)
        return Ref::taken(PyObject_Call(function, data, nullptr));
    return Ref::taken(PyObject_CallFunctionObjArgs(words[Word::call], function, data, nullptr));
}

/// What the stage made for the slot's batch before goes, but for what is still held; see `submit` in submission.py.
inline void free_made(const Way& way, std::intptr_t place, std::intptr_t slot, bool is_last) {
    PyObject* const made = item(way[Way::made], place);
    if (is_last)
        for (std::intptr_t i = 0; i < size(item(made, slot)); ++i)
            check(PyList_Append(way[Way::late], item(item(made, slot), i)));
    else
        append_held(way[Way::late], item(made, slot));
    put(made, slot, Ref::another(words[Word::empty]));
}

inline void stage(const Way& way, std::intptr_t place, std::intptr_t slot, Ref& data) {
    try {
        data = call(item(way[Way::functions], place), data.get());
        put(item(way[Way::made], place), slot, storages_in(data.get()));
    } catch (Raised) {
        put(way[Way::state], 0, Ref::taken(PyLong_FromLongLong(place)));
        throw;
    }
}

/// `overlapped(way, index, slot, batch, reads)` enqueues all of a batch, and returns its result; or `unhandled`, with nothing done. Leaves in
/// `state` the stage that raised, and storages to give away.
inline Ref overlapped(PyObject* const* arguments) {
    const Way way{arguments[0]};
    const std::intptr_t slot = number(arguments[2]);
    PyObject* const batch = arguments[3];
    if (!is_plain(batch, way[Way::versions]))
        return Ref::another(words[Word::unhandled]);
    Steps& steps = way.plan();
    const Turn turn{item(way[Way::turns], slot)};
    begin_batch(steps, turn);
    const Over over{way};
    way.begin_slot(slot, arguments[1]);
    Ref data = bring(way, batch, slot, steps.stream_of(static_cast<std::int32_t>(turn[Turn::copies])));
    const std::intptr_t count = size(way[Way::functions]);
    for (std::intptr_t place = 0; place < count; ++place) {
        const int moment = turn[Turn::first_stage + place];
        if (moment >= 0)
            require(steps.run(moment));
        free_made(way, place, slot, place + 1 == count);
        stage(way, place, slot, data);
    }
    require(steps.run(turn[arguments[4] == words[Word::none] ? Turn::end : Turn::end_and_read]));
    over.finish();
    return data;
}

/// `alone(way, batch)`: a batch of a plain loop, copied on the caller's stream; or `unhandled`, with nothing done. Who calls this holds the
/// batch until `wait_alone(way)`.
inline Ref alone(PyObject* const* arguments) {
    const Way way{arguments[0]};
    PyObject* const batch = arguments[1];
    if (!is_plain(batch, way[Way::versions]))
        return Ref::another(words[Word::unhandled]);
    struct OnDevice {
        Steps& steps;
        explicit OnDevice(Steps& of) : steps(of) { require(steps.enter_device()); }
        ~OnDevice() { steps.back(); }
    } const on{way.plan()};
    Ref data = mapped(batch, [&](PyObject* leaf) {
        return is_tensor(leaf) ? copied(way, leaf, on.steps.callers) : Ref::another(leaf);
    });
    require(on.steps.carry_out({sluice_steps::record, 0, sluice_steps::caller}));
    return data;
}

inline Ref wait_alone(PyObject* const* arguments) {
    wait_for(Way{arguments[0]}.plan(), 0);
    return Ref::another(words[Word::none]);
}

} // namespace sluice_flow

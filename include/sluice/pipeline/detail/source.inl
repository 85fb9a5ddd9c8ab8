// Bodies of source.hpp.
#pragma once

namespace sluice {

template <class Batch, class State, class Fill, Backend B>
template <class MakeSlot, class MakeState>
Source<Batch, State, Fill, B>::Source(MakeSlot make_slot, MakeState make_state, Fill fill,
                                      SourceOptions<B> options)
    : options_(options), device_(B::current_device()), fill_(std::move(fill)), end_(options.batches) {
    if (options.workers < 0) {
        throw Error("a source needs 0 workers (the caller fills) or more, got " +
                    std::to_string(options.workers));
    }
    if (options.slots < 0) {
        throw Error("a source needs at least 1 slot (0: two more than workers), got " +
                    std::to_string(options.slots));
    }
    const int slots = options.slots > 0 ? options.slots : options.workers + 2;
    slots_.reserve(static_cast<std::size_t>(slots));
    for (int slot = 0; slot < slots; ++slot)
        slots_.push_back(std::make_unique<Slot>(make_slot, slot));
    const int states = options.workers > 0 ? options.workers : 1;
    states_.reserve(static_cast<std::size_t>(states));
    for (int worker = 0; worker < states; ++worker)
        states_.push_back(make_state(worker));
}

// Fills batch `index`, whose slot is free for it. Returns false when the source ends there instead.
template <class Batch, class State, class Fill, Backend B>
bool Source<Batch, State, Fill, B>::fill_one(State& state, std::size_t index, Slot& slot) {
    await_read(slot);
    const auto call = [&]() -> decltype(auto) {
        if constexpr (std::same_as<State, NoState>) {
            return fill_(index, slot.value);
        } else {
            return fill_(state, index, slot.value);
        }
    };
    if constexpr (std::same_as<std::remove_cvref_t<decltype(call())>, bool>) {
        return call();
    } else {
        call();
        return true;
    }
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::work(State& state) {
    std::unique_lock lock(mutex_);
    for (;;) {
        if (stopping_ || claimed_ >= end_)
            return;
        const std::size_t index = claimed_++;
        Slot& slot = slot_of(index);
        changed_.wait(lock, [&] { return stopping_ || (slot.turn == index && !slot.filled); });
        if (stopping_)
            return;
        lock.unlock();
        bool filled = false;
        std::exception_ptr thrown;
        try {
            const DeviceGuard<B> device(device_);
            filled = fill_one(state, index, slot);
        } catch (...) {
            thrown = std::current_exception();
        }
        lock.lock();
        slot.thrown = thrown;
        slot.last = !filled && thrown == nullptr;
        slot.filled = true;
        if (!filled && index < end_)
            end_ = index + 1;
        changed_.notify_all();
    }
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::start() {
    if (started_)
        return;
    started_ = true;
    workers_.reserve(states_.size());
    for (int worker = 0; worker < options_.workers; ++worker) {
        workers_.emplace_back([this, &state = states_[static_cast<std::size_t>(worker)]] { work(state); });
    }
}

template <class Batch, class State, class Fill, Backend B>
typename Source<Batch, State, Fill, B>::value_type* Source<Batch, State, Fill, B>::next() {
    give_back();
    start();
    std::unique_lock lock(mutex_);
    const std::size_t index = handed_;
    if (stopping_ || index >= end_)
        return nullptr;
    Slot& slot = slot_of(index);
    if (options_.workers == 0 && !slot.filled) {
        lock.unlock();
        bool filled = false;
        try {
            const DeviceGuard<B> device(device_);
            filled = fill_one(states_.front(), index, slot);
        } catch (...) {
            slot.thrown = std::current_exception();
        }
        lock.lock();
        slot.last = !filled && slot.thrown == nullptr;
        slot.filled = true;
    }
    changed_.wait(lock, [&] { return stopping_ || (slot.turn == index && slot.filled); });
    if (stopping_)
        return nullptr;
    if (slot.thrown != nullptr)
        throw_failure(index, slot.thrown);
    if (slot.last)
        return nullptr;
    current_.value_ = &slot.value;
    current_.read_ = &slot.read;
    current_.index_ = index;
    current_.released_ = false;
    ++handed_;
    return &current_;
}

// Lets the slot of the batch in the caller's hands be filled again.
template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::give_back() noexcept {
    if (current_.value_ == nullptr)
        return;
    {
        const std::lock_guard lock(mutex_);
        Slot& slot = slot_of(current_.index_);
        slot.reading = current_.released_;
        slot.filled = false;
        slot.turn += slots_.size();
    }
    current_.value_ = nullptr;
    changed_.notify_all();
}

// Waits for the work that reads a slot. A fault of that work is its stream's to report: it is over in any
// case.
template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::await_read(Slot& slot) noexcept {
    if (!slot.reading)
        return;
    try {
        slot.read.synchronize();
    } catch (...) {
    }
    slot.reading = false;
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::await_reads() noexcept {
    give_back();
    for (const auto& slot : slots_)
        await_read(*slot);
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::stop() noexcept {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_)
        worker.join();
    workers_.clear();
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::rewind() {
    stop();
    await_reads();
    for (std::size_t index = 0; index < slots_.size(); ++index) {
        Slot& slot = *slots_[index];
        slot.turn = index;
        slot.filled = slot.last = false;
        slot.thrown = nullptr;
    }
    claimed_ = handed_ = 0;
    end_ = options_.batches;
    started_ = stopping_ = false;
}

template <class Batch, class State, class Fill, Backend B>
void Source<Batch, State, Fill, B>::throw_failure(std::size_t index, const std::exception_ptr& thrown) {
    const std::string what = "source: filling batch " + std::to_string(index) + " failed: ";
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& exception) {
        std::throw_with_nested(Error(what + exception.what()));
    } catch (...) {
        std::throw_with_nested(Error(what + "an exception of an unknown type"));
    }
}

} // namespace sluice

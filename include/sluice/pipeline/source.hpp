/// \file
/// Sources: what fills host batches.
#pragma once

#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice {

/// How a source works.
template <Backend B = DefaultBackend>
struct SourceOptions {
    /// As many batches as `fill` gives: it then returns bool, and ends the source with false.
    static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

    /// Threads that fill slots; 0: the caller's thread fills each batch when it asks for it.
    int workers = 1;
    /// Slots, at least 1. A slot is busy while it is filled, waits its turn, and is read by the first stage's
    /// work; 0 stands for two more than there are workers.
    int slots = 0;
    /// Batches that the source holds.
    std::size_t batches = unlimited;
};

/// A source's batch in the caller's hands. Reaches the slot through `*` and `->`, for a look: give `submit` the batch
/// itself, not `*batch`, of which the source would not learn that work still reads it.
template <class Batch, Backend B = DefaultBackend>
class SourceBatch {
public:
    SourceBatch() = default;
    SourceBatch(const SourceBatch&) = delete;
    SourceBatch& operator=(const SourceBatch&) = delete;

    const Batch& operator*() const noexcept { return *value_; }
    const Batch* operator->() const noexcept { return value_; }

    /// The batch's number in its source, from 0.
    std::size_t index() const noexcept { return index_; }

    /// The slot may be filled again once what `stream` has been handed so far is done. A pipeline's `submit`
    /// calls it; a batch that is submitted twice stays until both have read it.
    void release(BasicStreamRef<B> stream) const {
        if (released_)
            stream.wait(*read_);
        read_->record(stream);
        released_ = true;
    }

private:
    template <class, class, class, Backend>
    friend class Source;

    Batch* value_ = nullptr;
    BasicEvent<B>* read_ = nullptr;
    std::size_t index_ = 0;
    mutable bool released_ = false; // Of the slot, which the batch only refers to.
};

/// The state of a source whose workers need none of their own.
struct NoState {};

/// Fills slots with batches 0, 1, 2 … and hands them out in that order, whatever the number of workers.
///
/// | callable | what it does |
/// | --- | --- |
/// | `make_slot(int slot)` | makes a `Batch`, such as two pinned buffers; once a slot |
/// | `make_state(int worker)` | makes what one worker keeps for itself; once a worker |
/// | `fill(state, std::size_t index, Batch& out)` | fills batch `index`; if it returns bool, false ends the source before it |
///
/// Both makers are called on the constructing thread. Without `make_state`, `fill` is called as `fill(index, out)`.
///
/// Workers call `fill` at the same time, each with its own state and a slot of its own; which worker fills
/// which batch is not determined, so `fill` must depend on `index` alone for the same batches each time (see
/// `CountedRandom`).
///
/// A slot is filled again only after the work that read it is done. When `fill` throws, the caller gets the
/// batches before that one, and then an `Error` with the exception nested; `rewind` starts anew. Destroying a
/// source, or `stop`, in the middle lets the batches being filled come to their end and drops the rest.
///
/// The constructing thread iterates; its workers are its own. Belongs to the device that was current when it
/// was made. Can be neither copied nor moved.
///
/// \code
/// sluice::Source source{[](int) { return Batch{}; },
///                       [&](std::size_t index, Batch& out) { load(index, out); },
///                       {.workers = 4, .batches = 1000}};
/// for (const auto& batch : source) pipeline.submit(batch);
/// \endcode
template <class Batch, class State, class Fill, Backend B = DefaultBackend>
class Source {
public:
    using backend = B;
    using value_type = SourceBatch<Batch, B>;

    /// Throws `Error` for negative workers or slots, and what a maker throws.
    template <class MakeSlot>
    Source(MakeSlot make_slot, Fill fill, SourceOptions<B> options = {}) requires std::same_as<State, NoState>
        : Source(
              make_slot, [](int) { return NoState{}; }, std::move(fill), options) {}
    template <class MakeSlot, class MakeState>
    Source(MakeSlot make_slot, MakeState make_state, Fill fill, SourceOptions<B> options = {});

    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;
    /// Stops, and waits for the work that reads slots.
    ~Source() {
        stop();
        await_reads();
    }

    /// The next batch, or null after the last one. Waits until it has been filled. A batch that was handed
    /// out before and not submitted since goes back unread. Throws `Error` when filling it failed.
    value_type* next();

    /// Ends the source: workers finish the batches in hand and are gone when it returns, later ones are not
    /// filled. Safe to call twice, and in the middle.
    void stop() noexcept;

    /// Stops, waits until all slots have been read, and starts again from batch 0.
    void rewind();

    class Iterator;
    /// Goes on from where the source stands: `for (const auto& batch : source)`.
    Iterator begin() { return Iterator(*this); }
    std::default_sentinel_t end() const noexcept { return {}; }

private:
    struct Slot {
        template <class MakeSlot>
        Slot(MakeSlot& make, int index)
            : value(make(index)), read(EventOptions{.sleep_while_waiting = true}),
              turn(static_cast<std::size_t>(index)) {}

        Batch value;
        BasicEvent<B> read;
        std::size_t turn;     // The batch that may be filled here next.
        bool filled = false;  // Whether batch `turn` is here and has not been taken.
        bool reading = false; // Whether `read` must be waited for before filling.
        bool last = false;    // Whether the source ended instead of filling batch `turn`.
        std::exception_ptr thrown;
    };

    Slot& slot_of(std::size_t index) noexcept { return *slots_[index % slots_.size()]; }
    bool fill_one(State& state, std::size_t index, Slot& slot);
    void work(State& state);
    void start();
    void give_back() noexcept;
    void await_reads() noexcept;
    static void await_read(Slot& slot) noexcept;
    [[noreturn]] void throw_failure(std::size_t index, const std::exception_ptr& thrown);

    SourceOptions<B> options_;
    int device_;
    Fill fill_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::vector<State> states_;
    std::vector<std::thread> workers_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t claimed_ = 0; // The first batch that no worker has taken on.
    std::size_t end_;         // The first batch that will not be filled.
    bool started_ = false;
    bool stopping_ = false;

    std::size_t handed_ = 0; // The next batch for the caller.
    value_type current_;
};

template <class Batch, class State, class Fill, Backend B>
class Source<Batch, State, Fill, B>::Iterator {
public:
    using value_type = typename Source::value_type;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Source& source) : source_(&source), batch_(source.next()) {}
    value_type& operator*() const noexcept { return *batch_; }
    Iterator& operator++() {
        batch_ = source_->next();
        return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& iterator, std::default_sentinel_t) {
        return iterator.batch_ == nullptr;
    }

private:
    Source* source_;
    value_type* batch_;
};

template <class MakeSlot, class Fill, Backend B = DefaultBackend>
Source(MakeSlot, Fill, SourceOptions<B> = {})
    -> Source<std::invoke_result_t<MakeSlot&, int>, NoState, Fill, B>;

template <class MakeSlot, class MakeState, class Fill, Backend B = DefaultBackend>
requires std::invocable<MakeState&, int> Source(MakeSlot, MakeState, Fill, SourceOptions<B> = {})
->Source<std::invoke_result_t<MakeSlot&, int>, std::invoke_result_t<MakeState&, int>, Fill, B>;

} // namespace sluice

#include <sluice/pipeline/detail/source.inl>

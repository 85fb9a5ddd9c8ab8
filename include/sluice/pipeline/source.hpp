/// \file
/// Sources: what fills host batches.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/detail/iterators.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/batch_read.hpp>
#include <sluice/pipeline/detail/source_core.hpp>
#include <sluice/pipeline/source_ends.hpp>
#include <sluice/pipeline/source_options.hpp>
#include <sluice/pipeline/stage_time.hpp>

namespace sluice {

namespace detail {
template <class Batch, Backend B>
struct SourcePlace;
template <class Batch, Backend B>
class JoinedPlace;
struct HeldBatchAccess;

/// That a SourceBatch was used that has no batch.
[[noreturn]] void throw_no_batch();
struct MakeNoState {
    NoState operator()(int) const noexcept { return {}; }
};
} // namespace detail

/// Whether a source keeps a batch as a `HeldBatch`: where one can be derived from it.
template <class Batch>
concept HoldableBatch =
    std::is_class_v<Batch> && !std::is_final_v<Batch> && std::is_move_constructible_v<Batch>;

/// A source's batch that knows the slot that it lies in, so that a pipeline that is given `*batch` instead of `batch` can
/// hold the slot all the same. Made by sources alone; copy it as a `Batch`.
template <class Batch, Backend B = DefaultBackend>
class HeldBatch : public Batch {
public:
    /// Cannot be copied.
    HeldBatch(const HeldBatch&) = delete;
    /// Cannot be assigned.
    HeldBatch& operator=(const HeldBatch&) = delete;

private:
    template <class, Backend>
    friend struct detail::SourcePlace;
    template <class, Backend>
    friend class detail::JoinedPlace;
    friend struct detail::HeldBatchAccess;
    HeldBatch(Batch&& batch, detail::SourceSlot<B>* slot)
        : Batch(std::move(batch)), sluice_source_slot_(slot) {}
    // Names that hide no member of `Batch`.
    SourceHold<B> sluice_source_hold() const { return SourceHold<B>::of(sluice_source_slot_); }
    detail::SourceSlot<B>* sluice_source_slot_;
};

/// A batch of a source in the caller's hands. The slot that it lies in is not filled again while this lives, nor before
/// the work is done that was announced with `release`, as a pipeline's `submit` does. Destroyed without either, it gives
/// the slot back unread.
///
/// Empty at the end of the source, and when moved from. Move-only. May outlive its source.
template <class Batch, Backend B = DefaultBackend>
class SourceBatch {
public:
    /// What it is of.
    using batch_type = Batch;
    /// What `*` refers to: a `Batch`, or, where one can be derived from it, one that knows its slot, so that
    /// `pipeline.submit(*batch)` does the same as `pipeline.submit(batch)`. Copy it as a `Batch`, not with `auto`.
    using value_type =
        typename std::conditional_t<HoldableBatch<Batch>, std::type_identity<HeldBatch<Batch, B>>,
                                    std::type_identity<Batch>>::type;

    /// Empty.
    SourceBatch() = default;
    /// Leaves `other` empty.
    SourceBatch(SourceBatch&& other) noexcept
        : value_(std::exchange(other.value_, nullptr)), slot_(std::exchange(other.slot_, nullptr)) {}
    /// Gives its own slot back first, and leaves `other` empty.
    SourceBatch& operator=(SourceBatch&& other) noexcept {
        if (this != &other) {
            reset();
            value_ = std::exchange(other.value_, nullptr);
            slot_ = std::exchange(other.slot_, nullptr);
        }
        return *this;
    }
    /// Gives the slot back.
    ~SourceBatch() { reset(); }

    /// Whether there is a batch.
    explicit operator bool() const noexcept { return value_ != nullptr; }
    /// Whether there is none.
    friend bool operator==(const SourceBatch& batch, std::nullptr_t) noexcept { return !batch; }

    /// The batch. Good until the slot is given back. Throws `Error` when there is none.
    const value_type& operator*() const {
        require_batch();
        return *value_;
    }
    /// The same.
    const Batch* operator->() const {
        require_batch();
        return value_;
    }

    /// The batch's number in its source, from 0. Throws `Error` when there is none.
    std::size_t index() const {
        require_batch();
        return slot_->index;
    }

    /// For work outside of pipelines: the slot is not filled again before what `stream` has been handed so far is done.
    /// For any number of streams, of any device, which do not wait for each other. Throws `Error`: when there is no batch, and while
    /// `stream` is being captured, since the source would not know of the replays.
    void release(BasicStreamRef<B> stream) const {
        require_batch();
        slot_->ledger->release(*slot_, stream);
    }

    /// Gives the slot back at once, and is empty then.
    void reset() noexcept {
        value_ = nullptr;
        if (detail::SourceSlot<B>* const slot = std::exchange(slot_, nullptr); slot != nullptr)
            slot->ledger->done(*slot, false);
    }

    /// Holds the slot beyond this handle, until the result's `give_up` is called, as pipelines do. Throws `Error` when there
    /// is no batch.
    SourceHold<B> hold() const {
        require_batch();
        return SourceHold<B>::of(slot_);
    }

private:
    template <class, class, class, Backend>
    friend class Source;
    friend struct detail::JoinAccess;

    SourceBatch(const value_type& value, detail::SourceSlot<B>& slot) noexcept
        : value_(&value), slot_(&slot) {}
    void require_batch() const {
        if (value_ == nullptr) [[unlikely]]
            detail::throw_no_batch();
    }

    const value_type* value_ = nullptr;
    detail::SourceSlot<B>* slot_ = nullptr;
};

/// An input iterator over the batches of a source, or of what gives them in the same way. Holds one batch at a time. Move-only.
template <class From>
class SourceIterator {
public:
    /// What `next` gives.
    using value_type = typename From::value_type;
    /// Of iterators: none is ever taken.
    using difference_type = std::ptrdiff_t;

    /// At the source's next batch, as `next`.
    explicit SourceIterator(From& source) : source_(&source), batch_(source.next()) {}
    /// The batch, which the loop may move from or submit.
    value_type& operator*() const noexcept { return batch_; }
    /// Gives the batch back and takes the next one, as `next`.
    SourceIterator& operator++() {
        batch_.reset(); // First, since its slot may be the only one.
        batch_ = source_->next();
        return *this;
    }
    /// The same.
    void operator++(int) { ++*this; }
    /// Whether the source has ended.
    friend bool operator==(const SourceIterator& iterator, std::default_sentinel_t) {
        return !iterator.batch_;
    }

private:
    From* source_;
    mutable value_type batch_; // The loop's to keep or to give back.
};

/// Fills slots with batches 0, 1, 2 … and hands them out in that order, whatever the number of workers and however long
/// each of them takes.
///
/// | callable | what it does |
/// | --- | --- |
/// | `make_slot(int slot)` | makes a `Batch`, such as two pinned buffers; once a slot |
/// | `make_state(int worker)` | makes what one worker keeps for itself; once a worker |
/// | `fill(state, std::size_t index, Batch& out)` | fills batch `index`; returns nothing, or bool: false ends the source before it |
///
/// Both makers are called on the constructing thread. Without `make_state`, `fill` is called as `fill(index, out)`. One that takes a
/// `FillStop` behind `out` is given it.
///
/// Workers call `fill` at the same time, each with its own state and a slot of its own; which worker fills
/// which batch is not determined, so `fill` must depend on `index` alone for the same batches each time (see
/// `CountedRandom`, and `Sampler` for which samples make up a batch).
///
/// A slot is filled again only after its `SourceBatch` is destroyed and the work that read it is done. When `fill` throws, the
/// caller gets the batches before that one, then, once, an `Error` with the exception nested; `rewind` starts anew;
/// `SourceOptions::errors_in_a_row` leaves such batches out instead. So it is when waiting for the work fails and the slot may still be read. Destroying a source, or `stop`, in the middle lets the
/// batches being filled come to their end and drops the rest.
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
    /// Whose streams read the batches.
    using backend = B;
    /// What `next` gives.
    using value_type = SourceBatch<Batch, B>;

    /// Makes the slots. The workers start with the first `next`. Throws `Error` for negative workers, slots or timeouts,
    /// for a timeout without workers, and for what a maker throws, which is nested.
    template <class MakeSlot>
    Source(MakeSlot make_slot, Fill fill, SourceOptions<B> options = {}) requires std::same_as<State, NoState>
        : Source(make_slot, detail::MakeNoState{}, std::move(fill), options) {}
    /// The same, with a state for each worker.
    template <class MakeSlot, class MakeState>
    Source(MakeSlot make_slot, MakeState make_state, Fill fill, SourceOptions<B> options = {});

    Source(const Source&) = delete;            ///< Cannot be copied.
    Source& operator=(const Source&) = delete; ///< Cannot be assigned.
    /// Stops, and waits for the work that reads slots. Slots that are still held live on until they are given up.
    ~Source() { core_.close(); }

    /// The next batch, or an empty one after the last. Waits until it has been filled. Throws `Error` when filling it
    /// failed: the source has ended then, and gives empty ones until `rewind`. Throws also when it was not ready within
    /// `SourceOptions::timeout`, when a worker thread cannot be started, and when it would wait for ever, since the caller
    /// holds all slots; after these the source goes on where it stands.
    [[nodiscard]] value_type next() { return given(core_.next()); }

    /// The newest batch that is ready, without waiting for one, or an empty one: those before it are dropped, and count as
    /// `dropped`. After an empty one, one that is ready is left until it is asked for. Without workers it is `next`, since nothing is ever ready then. Throws `Error` as `next` does where filling
    /// the next batch failed.
    [[nodiscard]] value_type newest() { return given(core_.newest()); }

    /// How many further batches `next` would return right now without waiting, if nothing is in its way. 0 without
    /// workers, and after `stop`. Any thread may ask. Where batches are dropped, `next` may meet fewer of them.
    std::size_t filled() const noexcept { return core_.ledger().ready.load(); }
    /// How many batches have been filled since the source was made or rewound and are not handed out: those that
    /// `SourceOptions::when_ahead` or `newest` has dropped, and those that were ready at a `stop`, or lay behind the end. Each
    /// batch that `fill` has filled was handed out, is waiting, or is one of these. Any thread may ask.
    std::size_t dropped() const noexcept { return core_.ledger().dropped.load(); }
    /// The slots that it has.
    std::size_t slots() const noexcept { return core_.ledger().slots.size(); }
    /// Whether batches are dropped when it is ahead.
    bool drops() const noexcept { return core_.ledger().drops; }
    /// The threads that fill them; 0: the caller's.
    int workers() const noexcept { return core_.options().workers; }

    /// The batches that were left out since the source was made or rewound, as far as `next` has come, or, where batches
    /// are dropped, workers have needed their slots. Any thread may ask.
    SkippedBatches skipped() const { return core_.skipped(); }

    /// When the last batches were filled and taken, in their order: those that have been filled. Any thread may ask. Throws
    /// `Error` where nothing is noted.
    std::vector<FillTime> fill_times() const { return core_.fill_times(); }

    /// Ends the source: workers finish the batches in hand and are gone when it returns, later ones are not
    /// filled. Safe to call twice, and in the middle. Called from within `fill`, it ends the source before the batch being
    /// filled, as returning false does, and does not wait.
    void stop() noexcept { core_.stop(); }

    /// Stops, waits until all slots that are not held have been read, and starts again from batch 0. Throws `Error` when
    /// that wait fails and a slot may still be read, and when it is called from within `fill`.
    void rewind() { core_.rewind(); }

    /// Over the batches.
    using Iterator = SourceIterator<Source>;
    /// Goes on from where the source stands: `for (const auto& batch : source)`.
    Iterator begin() { return Iterator(*this); }
    /// Behind the last batch.
    std::default_sentinel_t end() const noexcept { return {}; }

private:
    using Place = detail::SourcePlace<Batch, B>;
    using Slot = detail::SourceSlot<B>;
    static constexpr bool check_fill();
    // Called by the core.
    static bool fill_slot(void* source, std::size_t worker, Slot& slot);
    static value_type given(Slot* slot) noexcept {
        return slot == nullptr ? value_type() : value_type(static_cast<Place*>(slot)->value, *slot);
    }

    Fill fill_;
    detail::SourceCore<B> core_;
    detail::List<State> states_; // of its workers
};

/// Of what makes a slot and what fills it.
template <class MakeSlot, class Fill, Backend B = DefaultBackend>
Source(MakeSlot, Fill, SourceOptions<B> = {})
    -> Source<std::invoke_result_t<MakeSlot&, int>, NoState, Fill, B>;

/// The same, with what makes a worker's state.
template <class MakeSlot, class MakeState, class Fill, Backend B = DefaultBackend>
requires std::invocable<MakeState&, int> Source(MakeSlot, MakeState, Fill, SourceOptions<B> = {})
->Source<std::invoke_result_t<MakeSlot&, int>, std::invoke_result_t<MakeState&, int>, Fill, B>;

} // namespace sluice

#include <sluice/pipeline/detail/source.inl>

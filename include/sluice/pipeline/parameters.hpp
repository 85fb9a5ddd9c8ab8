/// \file
/// What a stage's callable may take beside batches and slots: a slot to change, the slots of batches before, which of
/// several batches this one is, and which lane works on it.
#pragma once

#include <sluice/backend/config.hpp>

namespace sluice {

namespace detail {
template <class Shape, class Batch>
class StageCalls;
} // namespace detail

/// The output of an earlier stage, of type `T`, that this stage changes where it is, and hands on as its own output: there is no
/// copy and no second slot. Stages listed behind it that take a `T` get it changed. No other stage may take it unchanged, and the
/// stage makes nothing else. Taken as `sluice::InPlace<T>&` or by value.
///
/// \code
/// sluice::Stage filter{"filter", [](sluice::StreamRef stream, sluice::InPlace<Block>& block) { multiply(stream, *block); }};
/// \endcode
template <class T>
class InPlace {
public:
    /// Of a slot.
    explicit InPlace(T& slot) noexcept : slot_(&slot) {}
    /// The slot.
    T& operator*() const noexcept { return *slot_; }
    /// The same.
    T* operator->() const noexcept { return slot_; }

private:
    T* slot_;
};

/// What an earlier stage has made of this batch and of those before, `Count` in all, at least 2. The pipeline keeps as many slots
/// more. Before as many batches have come, since the pipeline was made or reset, there are fewer. A stage that takes one has no
/// lanes. Taken as `const sluice::Last<Count, T>&` or by value.
///
/// \code
/// sluice::Stage add{"add", [](sluice::StreamRef stream, const sluice::Last<2, Block>& blocks, Sum& out) {
///     overlap_add(stream, blocks.size() == 2 ? blocks[1].data() : nullptr, blocks[0].data(), out.data());
/// }};
/// \endcode
template <int Count, class T>
class Last {
    static_assert(Count >= 2,
                  "sluice::Last: take at least 2 batches; one alone is taken as the output itself");

public:
    /// How many there are: `Count`, or fewer at first, at least 1.
    int size() const noexcept {
        int size = 1;
        while (size < Count && slots_[size] != nullptr)
            ++size;
        return size;
    }
    /// What was made of the batch `back` batches ago, of this one for 0. There must be as many, see `size`.
    const T& operator[](int back) const noexcept { return *static_cast<const T*>(slots_[back]); }

private:
    template <class Shape, class Batch>
    friend class detail::StageCalls;
    explicit Last(void* const* slots) noexcept : slots_(slots) {}

    void* const* slots_; // null where there was no batch
};

/// Which of several batches this one is. A stage with `StageOptions::every` gets which of those that its output is made of. A
/// stage behind it, which runs once for all of them, gets the last one: before `finish`, or at the end of `run`, there may be
/// fewer. Taken by value or as `const sluice::Turn&`.
///
/// \code
/// sluice::Stage integrate{"integrate", [](sluice::StreamRef stream, const Power& in, Spectrum& out, sluice::Turn turn) {
///     if (turn.first()) sluice::fill_bytes(stream, out.values, 0);
///     add(stream, in.values, out.values);
/// }, {.every = 16}};
/// \endcode
struct Turn {
    int index = 0; ///< From 0.
    int count = 1; ///< Of so many.
    /// Whether it is the first of them.
    bool first() const noexcept { return index == 0; }
    /// Whether it is the last of as many as there are to be.
    bool last() const noexcept { return index + 1 == count; }
};

/// Which of its lanes a stage works on a batch with, under each schedule: the batch's number by `StageOptions::lanes`. The stage's
/// work on batches of one lane follows each other, so that it may have memory for each lane that no other lane's work uses.
/// Taken by value or as `const sluice::Lane&`.
///
/// \code
/// sluice::Stage solve{"solve", [&](sluice::StreamRef stream, const System& in, Solution& out, sluice::Lane lane) {
///     run_solver(stream, in, workspaces[lane.index], out);
/// }, {.lanes = 4}};
/// \endcode
struct Lane {
    int index = 0; ///< From 0.
    int count = 1; ///< Of so many.
};

} // namespace sluice

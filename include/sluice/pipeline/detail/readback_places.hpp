// The pinned memory that a readback copies to.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include <sluice/backend/detail/copies.hpp>
#include <sluice/backend/detail/device_event.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/pipeline/detail/readback_state.hpp>

namespace sluice::detail {

/// Whether copies find their places when they run.
template <Backend B>
bool has_ring_copies(bool load) noexcept {
    if constexpr (requires { B::has_ring_copies(load); })
        return B::has_ring_copies(load);
    else
        return false;
}

/// Pinned places of one size, in rows for a `RingCopy` each, made in advance: during a capture nothing pinned can be allocated. Not
/// synchronised.
template <Backend B>
class ReadbackPlaces {
public:
    using Place = ReadbackPlace;
    using Row = std::byte*;

    /// For results of up to `bytes`.
    ReadbackPlaces(std::size_t bytes, std::size_t slots)
        : stride_(RingCopy::header + (bytes + 63) / 64 * 64) {
        // One block copies to a row, which is no good for large results.
        const std::size_t depth = std::bit_floor(slots);
        if (depth * stride_ <= most_in_a_row && has_ring_copies<B>(true))
            depth_ = depth;
    }

    /// Places in a row.
    std::size_t depth() const noexcept { return depth_; }
    std::size_t row_bytes() const noexcept { return RingCopy::header + depth_ * stride_; }
    /// Rows that are free.
    std::size_t free() const noexcept { return free_.size(); }

    void add(std::size_t rows) {
        blocks_.reserve(blocks_.size() + 1);
        PinnedBuffer<std::byte, B> block(checked_bytes(rows, row_bytes()));
        made_ += rows;
        free_.reserve(made_); // so that `give_back` allocates nothing
        for (std::size_t row = 0; row < rows; ++row)
            free_.push_back(block.data() + row * row_bytes());
        blocks_.push_back(std::move(block));
    }
    /// One that is free, whose counter is 0; there must be one.
    Row take() noexcept {
        const Row row = free_.back();
        free_.pop_back();
        counter_of(row) = 0;
        return row;
    }
    void give_back(Row row) noexcept { free_.push_back(row); }

    static std::uint32_t& counter_of(Row row) noexcept { return *reinterpret_cast<std::uint32_t*>(row); }
    /// For the copy that finds the counter at `count`.
    Place place(Row row, std::size_t count) const noexcept {
        std::byte* const at = row + RingCopy::header + count % depth_ * stride_;
        return {reinterpret_cast<std::int64_t*>(at), at + RingCopy::header};
    }
    RingCopy copy_to(Row row, const void* from, std::size_t bytes,
                     const std::int64_t* length) const noexcept {
        return {row,
                from,
                length,
                static_cast<std::uint32_t>(depth_),
                static_cast<std::uint32_t>(stride_),
                static_cast<std::uint32_t>(bytes)};
    }

    /// For a copy to this place, by which no counter moves.
    static RingCopy copy_to(const Place& place, const void* from, std::size_t bytes,
                            const std::int64_t* length) noexcept {
        // More than 32 bits count is more than such a copy is for.
        constexpr std::size_t most = (std::numeric_limits<std::uint32_t>::max)();
        return {reinterpret_cast<std::byte*>(place.length),
                from,
                length,
                0,
                0,
                static_cast<std::uint32_t>(bytes < most ? bytes : most)};
    }

private:
    static constexpr std::size_t most_in_a_row = 65536;

    std::size_t stride_;
    std::size_t depth_ = 1;
    std::size_t made_ = 0;
    List<PinnedBuffer<std::byte, B>> blocks_;
    List<Row> free_;
};

/// The rows that one graph copies its results to, in the order of its pushes, and the events behind its last launches.
template <Backend B>
class ReplayedResults {
public:
    using Places = ReadbackPlaces<B>;
    struct Result {
        typename Places::Row row;
        std::size_t size;
        bool counted; // Whether a place's `length` says how many of them there are.
    };

    /// Of the capture under way: on a device without such copies each result has one place.
    explicit ReplayedResults(Shared<Places> places)
        : pool(std::move(places)),
          launches_(pool->depth() > 1 && has_ring_copies<B>(false) ? pool->depth() : 1) {}
    ReplayedResults& operator=(ReplayedResults&&) = delete;
    ~ReplayedResults() {
        if (!latest().reached) // It comes after the others.
            latest().arrived.settle();
        for (const Result& result : results)
            pool->give_back(result.row);
    }

    /// Whether results have places in turns.
    bool in_turns() const noexcept { return launches_.size() > 1; }
    /// Whether another launch has places.
    bool has_room() const noexcept { return pending + results.size() <= launches_.size() * results.size(); }
    /// Before a launch. Where nothing is under way, the counters say where copies go on: after a fault some may not have run.
    void prepare() noexcept {
        for (std::size_t i = 0; pending == 0 && i < results.size(); ++i)
            counts_[i] = Places::counter_of(results[i].row);
    }
    /// After a launch on `stream`; returns its number. Throws `Error`.
    std::size_t launched(BasicStreamRef<B> stream) {
        for (std::size_t i = 0; in_turns() && i < results.size(); ++i)
            ++counts_[i];
        Launch& launch = launches_[(number_ + 1) % launches_.size()];
        launch.arrived.record(stream);
        launch.reached = false;
        return ++number_;
    }
    /// Of the last launch.
    ReadbackPlace place(std::size_t result) const noexcept {
        return pool->place(results[result].row, in_turns() ? counts_[result] - 1 : 0);
    }
    void add(const Result& result) {
        counts_.push_back(0);
        results.push_back(result);
    }
    bool has_arrived(std::size_t launch) {
        Launch& of = launches_[launch % launches_.size()];
        return of.reached || (of.reached = of.arrived.is_done());
    }
    void await(std::size_t launch) {
        Launch& of = launches_[launch % launches_.size()];
        if (!of.reached)
            of.arrived.sync();
        of.reached = true;
    }

    /// The same in a destructor.
    void settle(std::size_t launch) noexcept {
        Launch& of = launches_[launch % launches_.size()];
        if (!of.reached)
            of.arrived.settle();
        of.reached = true;
    }

    Shared<Places> pool;
    List<Result> results;
    std::size_t pending = 0; // Results of launches that have not been handed over.

private:
    struct Launch {
        // Spins: the host may wait for it at a replay, and sleeping would leave the device idle.
        DeviceEvent<B> arrived;
        bool reached = true;
    };
    Launch& latest() { return launches_[number_ % launches_.size()]; }

    List<Launch> launches_;
    List<std::uint32_t> counts_; // copies launched, for each result
    std::size_t number_ = 0;     // of launches
};

} // namespace sluice::detail

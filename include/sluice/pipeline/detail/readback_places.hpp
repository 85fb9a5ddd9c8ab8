/// \file
/// The pinned memory that a readback copies to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/detail/shared.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/pipeline/detail/device_event.hpp>

namespace sluice::detail {

/// Pinned places of one size, made in advance: during a capture nothing pinned can be allocated. Not synchronised.
template <class T, Backend B>
class ReadbackPlaces {
public:
    /// A result on its way: its values, and behind `length`, where it is known on the device alone, how many.
    struct Place {
        std::int64_t* length;
        T* values;
    };

    explicit ReadbackPlaces(std::size_t count) : stride_(64 + (count * sizeof(T) + 63) / 64 * 64) {
        static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 64,
                      "sluice::Readback: values must be trivially copyable, and aligned to 64 bytes at most");
    }

    std::size_t stride() const noexcept { return stride_; }
    std::size_t free() const noexcept { return free_.size(); }

    void add(std::size_t places) {
        blocks_.reserve(blocks_.size() + 1);
        PinnedBuffer<std::byte, B> block(places * stride_);
        made_ += places;
        free_.reserve(made_); // so that `give_back` allocates nothing
        for (std::size_t place = 0; place < places; ++place) {
            std::byte* const at = block.data() + place * stride_;
            free_.push_back({reinterpret_cast<std::int64_t*>(at), reinterpret_cast<T*>(at + 64)});
        }
        blocks_.push_back(std::move(block));
    }
    /// One that is free; there must be one.
    Place take() noexcept {
        const Place place = free_.back();
        free_.pop_back();
        return place;
    }
    void give_back(Place place) noexcept { free_.push_back(place); }

private:
    std::size_t stride_;
    std::size_t made_ = 0;
    std::vector<PinnedBuffer<std::byte, B>> blocks_;
    std::vector<Place> free_;
};

/// The places that one graph copies its results to, in the order of its pushes, and the event behind its last launch.
template <class T, Backend B>
struct ReplayedResults {
    using Places = ReadbackPlaces<T, B>;
    struct Result {
        typename Places::Place place;
        std::size_t size;
        bool counted; // Whether the place's `length` says how many of them there are.
    };

    explicit ReplayedResults(Shared<Places> places) : pool(std::move(places)) {}
    ReplayedResults(const ReplayedResults&) = delete;
    ReplayedResults& operator=(const ReplayedResults&) = delete;
    ~ReplayedResults() {
        try {
            if (!reached)
                arrived.sync();
        } catch (...) {
            // The copies will not come; whoever waits for their stream gets the error.
        }
        for (const Result& result : results)
            pool->give_back(result.place);
    }

    Shared<Places> pool;
    std::vector<Result> results;
    // Spins: the host may wait for it at each replay, and sleeping would leave the device idle.
    DeviceEvent<B> arrived;
    bool reached = true;
    std::size_t pending = 0; // Results of the last launch that have not been handed over.
};

} // namespace sluice::detail

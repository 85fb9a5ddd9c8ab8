/// \file
/// Which batches' times are noted.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/detail/atomic.hpp>

namespace sluice::detail {

/// Batches in windows of equal length. The first windows are noted, and so is every one whose batches take their time. Where
/// they come so fast that notes would slow them down, one window in eight is.
class NotedWindows {
public:
    static constexpr std::int64_t fast =
        400'000; // nanoseconds from one batch to the next, of which notes take about 10'000
    static constexpr std::size_t first_windows = 4;
    static constexpr std::size_t one_in = 8;

    explicit NotedWindows(std::size_t length) noexcept : length_(length) {}

    /// `batch` will be submitted next, and it is `now`, in nanoseconds.
    void comes(std::size_t batch, std::int64_t now) noexcept {
        if (batch % length_ != 0)
            return;
        const std::size_t window = batch / length_;
        const bool noted = window < first_windows || window % one_in == 0 ||
                           (now - begun_) / static_cast<std::int64_t>(length_) >= fast;
        const std::uint64_t bit = bit_of(window);
        // Only the submitting thread writes.
        const std::uint64_t bits = bits_.load();
        bits_.store(noted ? bits | bit : bits & ~bit);
        begun_ = now;
    }
    /// Of one of the last 63 windows.
    bool hold(std::size_t batch) const noexcept { return (bits_.load() & bit_of(batch / length_)) != 0; }
    /// The first batch of the noted windows that follow each other up to the one of `batch`: two at most, as are kept.
    std::size_t stretch_before(std::size_t batch) const noexcept {
        const std::size_t window = batch / length_;
        return (window > 0 && hold((window - 1) * length_) ? window - 1 : window) * length_;
    }
    /// The one behind the last batch of the window of `batch`.
    std::size_t end_of(std::size_t batch) const noexcept { return (batch / length_ + 1) * length_; }

    /// The next batch is number 0 again.
    void restart() noexcept { bits_.store(1); }

private:
    static std::uint64_t bit_of(std::size_t window) noexcept { return std::uint64_t{1} << window % 64; }

    std::size_t length_;
    std::int64_t begun_ = 0; // The current window.
    Atomic<std::uint64_t> bits_{1};
};

} // namespace sluice::detail

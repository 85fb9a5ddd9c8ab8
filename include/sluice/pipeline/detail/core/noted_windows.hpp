// Which batches' times are noted, and which of the noted ones a report is about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <sluice/backend/detail/atomic.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/pipeline/stage_time.hpp>

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

/// Sorts `times` by stage and batch. Nearly all are in order.
inline void sort_times(std::vector<StageTime>& times) {
    const auto comes_before = [](const StageTime& a, const StageTime& b) {
        return a.stage != b.stage ? a.stage < b.stage : a.batch < b.batch;
    };
    for (std::size_t i = 1; i < times.size(); ++i) {
        for (std::size_t at = i; at > 0 && comes_before(times[at], times[at - 1]); --at)
            std::swap(times[at], times[at - 1]);
    }
}

/// Keeps the latest run of batches that all stages have noted without a gap, and of it the last `most`; graphs tell of their
/// latest runs alone, windows may have been left out, and of the last batches only some stages may have noted anything. A run
/// of fewer than eight batches is kept only where there is no longer one. Sorts by stage and batch. The last batch; 0 where
/// there is none. `runs(stage, batch)`: whether the stage runs for the batch, which otherwise needs no note of it.
template <class Runs>
std::size_t keep_last_run(std::vector<StageTime>& times, std::size_t most, Runs&& runs) {
    sort_times(times);
    // The stages with notes, and the batches of one of them.
    List<std::size_t> batches, stages;
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (i == 0 || times[i].stage != times[i - 1].stage)
            stages.push_back(times[i].stage);
        if (times[i].stage == times[0].stage)
            batches.push_back(times[i].batch);
    }
    const auto is_complete = [&](std::size_t batch) {
        std::size_t count = 0, wanted = 0;
        for (const StageTime& time : times)
            count += time.batch == batch && runs(time.stage, batch) ? 1U : 0U;
        for (const std::size_t stage : stages)
            wanted += runs(stage, batch) ? 1U : 0U;
        return count >= wanted;
    };
    const std::size_t wanted = most < 16 ? (most + 1) / 2 : 8;
    std::size_t best_first = 0, best_last = 0, best = 0, length = 0;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        if (!is_complete(batches[i])) {
            length = 0;
            continue;
        }
        length = length > 0 && batches[i] == batches[i - 1] + 1 ? length + 1 : 1;
        if (length >= (best < wanted ? best : wanted)) {
            best = length;
            best_last = batches[i];
            best_first = best_last + 1 - (length < most ? length : most);
        }
    }
    if (best == 0)
        return 0;
    std::size_t kept = 0;
    for (const StageTime& time : times) {
        if (time.batch >= best_first && time.batch <= best_last)
            times[kept++] = time;
    }
    times.resize(kept);
    return best_last;
}
/// The same where all stages run for each batch.
inline std::size_t keep_last_run(std::vector<StageTime>& times, std::size_t most) {
    return keep_last_run(times, most, [](std::size_t, std::size_t) { return true; });
}

} // namespace sluice::detail

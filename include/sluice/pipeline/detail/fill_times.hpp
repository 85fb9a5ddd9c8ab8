/// \file
/// When a source's batches were filled and taken: a ring of notes for the last ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/pipeline/detail/core/noted_windows.hpp>
#include <sluice/pipeline/stage_time.hpp>

namespace sluice::detail {

/// Of one batch, in nanoseconds of the clock. Its worker writes `begin` and `end` without the source's lock, and nobody
/// reads them before `filled`, which is the lock's.
struct FillNote {
    std::size_t batch = 0;
    std::size_t worker = 0;
    std::int64_t claimed = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t asked = 0;
    std::int64_t given = 0;
    bool filled = false;
};

/// Belongs to the source's lock. Holds at least as many notes as there are slots, so that no two batches that are being
/// filled share one.
class FillNotes {
public:
    static std::int64_t now() noexcept { return steady_nanoseconds(); }

    void make(std::size_t count) { notes_.resize(count); }
    bool any() const noexcept { return !notes_.empty(); }

    /// A worker is going to fill `batch`. Null where nothing is noted.
    FillNote* claimed(std::size_t batch, std::size_t worker) noexcept {
        if (!any())
            return nullptr;
        FillNote& note = notes_[batch % notes_.size()];
        note = {.batch = batch, .worker = worker, .claimed = now()};
        return &note;
    }
    /// `next` returns `batch`, which it was asked for then.
    void given(std::size_t batch, std::int64_t asked) noexcept {
        if (!any())
            return;
        FillNote& note = notes_[batch % notes_.size()];
        note.asked = asked;
        note.given = now();
    }
    void clear() noexcept {
        for (FillNote& note : notes_)
            note.filled = false;
    }

    std::vector<FillTime> all() const {
        std::vector<FillTime> times;
        std::size_t oldest = 0;
        for (std::size_t i = 0; i < notes_.size(); ++i) {
            if (notes_[i].filled && (!notes_[oldest].filled || notes_[i].batch < notes_[oldest].batch))
                oldest = i;
        }
        for (std::size_t i = 0; i < notes_.size(); ++i) {
            const FillNote& note = notes_[(oldest + i) % notes_.size()];
            if (!note.filled)
                continue;
            times.push_back({note.batch, static_cast<int>(note.worker), microseconds(note.claimed),
                             microseconds(note.begin), microseconds(note.end), microseconds(note.asked),
                             microseconds(note.given)});
        }
        return times;
    }

private:
    static double microseconds(std::int64_t nanoseconds) noexcept {
        return static_cast<double>(nanoseconds) / 1000;
    }
    std::vector<FillNote> notes_;
};

} // namespace sluice::detail

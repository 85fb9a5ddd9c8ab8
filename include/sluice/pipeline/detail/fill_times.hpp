// When a source's batches were filled and taken: a ring of notes for the last ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/pipeline/detail/core/noted_windows.hpp>
#include <sluice/pipeline/stage_time.hpp>

namespace sluice::detail {

/// Of one batch, in nanoseconds of the clock. Its worker writes `begin` and `end` without the source's lock, and no other thread
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
    bool busy = false; // A worker is at it, and
    bool late = false; // a later batch would have had the note by now. Both are the lock's as well.

    void settle(bool is_filled) noexcept {
        filled = is_filled && !late;
        busy = false;
    }
};

/// Belongs to the source's lock. Holds at least as many notes as there are slots, so that two batches that are being filled share
/// one only where batches between them were dropped: then the later one has none.
class FillNotes {
public:
    static std::int64_t now() noexcept { return steady_nanoseconds(); }

    void make(std::size_t count);
    bool any() const noexcept { return !notes_.empty(); }

    /// A worker is going to fill `batch`, until it calls the note's `settle`. Null where nothing is noted.
    FillNote* claimed(std::size_t batch, std::size_t worker) noexcept;
    /// `next` returns `batch`, which it was asked for then.
    void given(std::size_t batch, std::int64_t asked) noexcept;
    void clear() noexcept;

    std::vector<FillTime> all() const;

private:
    List<FillNote> notes_;
};

} // namespace sluice::detail

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/pipeline/detail/fill_times.inl>
#endif

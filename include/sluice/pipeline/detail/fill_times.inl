// Bodies of fill_times.hpp.
#pragma once

#include <sluice/pipeline/detail/fill_times.hpp>

namespace sluice::detail {

SLUICE_BODY void FillNotes::make(std::size_t count) { notes_.resize(count); }

SLUICE_BODY FillNote* FillNotes::claimed(std::size_t batch, std::size_t worker) noexcept {
    if (!any())
        return nullptr;
    FillNote& note = notes_[batch % notes_.size()];
    if (note.busy) {
        note.late = true;
        return nullptr;
    }
    note = {.batch = batch, .worker = worker, .claimed = now(), .busy = true};
    return &note;
}

SLUICE_BODY void FillNotes::given(std::size_t batch, std::int64_t asked) noexcept {
    if (!any())
        return;
    FillNote& note = notes_[batch % notes_.size()];
    if (note.batch != batch)
        return;
    note.asked = asked;
    note.given = now();
}

SLUICE_BODY void FillNotes::clear() noexcept {
    for (FillNote& note : notes_)
        note.filled = false;
}

SLUICE_BODY std::vector<FillTime> FillNotes::all() const {
    const auto microseconds = [](std::int64_t nanoseconds) {
        return static_cast<double>(nanoseconds) / 1000;
    };
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

} // namespace sluice::detail

// How many batches each stage of a captured step is behind the first one.
#pragma once

#include <cstddef>

#include <sluice/backend/detail/list.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>

namespace sluice::detail {

constexpr std::size_t smaller(std::size_t a, std::size_t b) noexcept { return b < a ? b : a; }
constexpr std::size_t larger(std::size_t a, std::size_t b) noexcept { return a < b ? b : a; }

/// After so many batches each stage meets its first lane again.
template <class Core>
std::size_t most_lanes(const Core& core) noexcept {
    std::size_t most = 1;
    for (std::size_t stage = 0; stage < core.stages(); ++stage)
        most = larger(most, core.lanes(stage));
    return most;
}

/// A stage is one batch behind those that it reads, as long as the slots between them last that long.
inline List<std::size_t> step_lags(const PlanData& plan, std::size_t slots) {
    const std::size_t stages = plan.stages.size();
    List<std::size_t> lags(stages);
    if (slots == 1)
        return lags; // a chain, with nothing to overlap
    for (std::size_t i = 0; i < stages; ++i)
        lags[i] = plan.stages[i].depth;
    bool lasts = true;
    for (std::size_t i = 0; i < stages; ++i) {
        for (std::size_t j = 0; j < i; ++j)
            lasts = lasts && !(plan.takes_slot_of(i, j) && lags[i] - lags[j] > slots);
    }
    for (std::size_t& lag : lags)
        lag = lasts ? lag : smaller(lag, slots);
    return lags;
}

/// Stages on one external stream work in its order: on each batch in the order of the list, all of them before the first one
/// has the next. `first_on_stream` tells for each stage the first one on its stream. They are captured on one stream, batch by
/// batch; so a later one must not be ahead of an earlier one, nor more than a batch behind. Lags are lowered until that holds,
/// and stages that read each other's outputs are still in order and no further apart than there are slots.
inline void lower_lags(const PlanData& plan, List<std::size_t>& lags, std::size_t slots,
                       const List<std::size_t>& first_on_stream) {
    for (bool changed = true; changed;) {
        changed = false;
        const auto at_most = [&](std::size_t stage, std::size_t most) {
            changed = changed || most < lags[stage];
            lags[stage] = smaller(lags[stage], most);
        };
        for (std::size_t i = 0; i < lags.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                const bool one_stream = first_on_stream[i] == first_on_stream[j];
                if (one_stream || plan.takes_slot_of(i, j)) {
                    at_most(j, lags[i]);
                    at_most(i, lags[j] + (one_stream ? 1 : slots));
                }
            }
        }
    }
}

} // namespace sluice::detail

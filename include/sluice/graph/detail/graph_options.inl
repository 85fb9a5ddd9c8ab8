// Bodies of graph_options.hpp.
#pragma once

#include <cstdio>
#include <string>

#include <sluice/backend/error.hpp>
#include <sluice/graph/graph_options.hpp>

namespace sluice {

SLUICE_BODY void print_refusal(const char* reason) {
    (void)std::fprintf(stderr, "sluice: %s; the work runs eagerly\n", reason);
}

SLUICE_BODY EagerRuns& EagerRuns::operator+=(const EagerRuns& other) noexcept {
    first_runs += other.first_runs;
    no_place += other.no_place;
    refused += other.refused;
    changed_slots += other.changed_slots;
    untold += other.untold;
    ends += other.ends;
    opted_out += other.opted_out;
    blocking += other.blocking;
    return *this;
}

SLUICE_BODY GraphCounters& GraphCounters::operator+=(const GraphCounters& other) noexcept {
    captures += other.captures;
    instantiations += other.instantiations;
    updates += other.updates;
    replays += other.replays;
    evictions += other.evictions;
    refusals += other.refusals;
    comparisons += other.comparisons;
    changes += other.changes;
    later_changes += other.later_changes;
    eager += other.eager;
    return *this;
}

SLUICE_BODY void detail::require_options(const GraphOptions& options) {
    if (options.capacity < 1 || options.capacity > std::size_t{1} << 20) {
        throw Error("a GraphCapture needs a capacity of 1 to 1048576 executables, got " +
                    std::to_string(options.capacity));
    }
    if (options.warmup < 0)
        throw Error("a GraphCapture needs a warm-up of at least 0 runs, got " +
                    std::to_string(options.warmup));
    if (options.comparisons < 0)
        throw Error("a GraphCapture needs 0 comparisons or more, got " + std::to_string(options.comparisons));
    require_capture_mode(options.capture);
}

SLUICE_BODY void Replay::require_current() const {
    if (is_current())
        return;
    if (*runs_ == forgotten) {
        throw Error("whether the outputs of this run have been overwritten is unknown: its key has left the "
                    "cache since; ask before, or make the GraphCapture's capacity larger");
    }
    throw Error("the outputs of this run have been overwritten by a later run of the same key; copy them "
                "before, or give each run in flight a key and outputs of its own");
}

} // namespace sluice

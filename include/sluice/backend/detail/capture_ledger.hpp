// What a thread's capture has been handed, for the guard that compares it with what was captured.
#pragma once

#include <cstddef>

#include <sluice/backend/config.hpp>

namespace sluice::detail {

/// Of the calling thread. Operations are counted while a guarded capture runs (`depth` above 0).
struct CaptureLedger {
    int depth = 0;
    std::size_t issued = 0;    // Operations enqueued on a capturing stream.
    std::size_t outside = 0;   // Operations enqueued on a stream that was not capturing: they ran at once.
    std::size_t in_bodies = 0; // Nodes captured into the bodies of conditional nodes.
    std::size_t marks = 0;     // Nodes that record an event, and do no work.

    void note(bool capturing, std::size_t operations = 1) noexcept {
        (capturing ? issued : outside) += operations;
    }
};

inline CaptureLedger& capture_ledger() noexcept {
    thread_local CaptureLedger ledger;
    return ledger;
}

} // namespace sluice::detail

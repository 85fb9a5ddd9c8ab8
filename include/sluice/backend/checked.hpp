/// \file
/// Races found without luck: a backend that knows the order of all work, on any timing.
#pragma once

#include <sluice/backend/concept.hpp>
#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/checked/backend.hpp>
#include <sluice/backend/detail/checked/checker.hpp>
#include <sluice/backend/findings.hpp>

namespace sluice {

/// `B`, `Host` or `Cuda`, and a bookkeeping of what its streams, events, semaphores and graphs order. Two accesses to the
/// same bytes, of which one writes, with nothing that orders them are an `Error`, whether or not they met this time.
///
/// Compile the whole program with `-DSLUICE_CHECKED=1`, and `Host` and `Cuda` are checked themselves, and with them all
/// streams, buffers and pipelines, without a change of the source. `Checked<Host>` can be named in any program.
///
/// **What is known.** Copies and fills; operations on rows; what stages are handed (a stage reads the batch and its inputs
/// and writes its own slot); what a `Source` fills and a `Readback` hands over; what `Stage::reads` and `Stage::writes`, or
/// `reads(stream, buffer)` and `writes(stream, buffer)` (memory/accesses.hpp) say of kernels and libraries; what the host
/// reads through `PinnedBuffer`; memory that is freed. Accesses of a kernel that are not declared are unknown. What the host
/// changes through `PinnedBuffer` is known by the bytes, which are compared until the work that reads them is over; not
/// where host functions in order with that work run meanwhile or, but for batches, kernels may.
///
/// **What orders.** Streams; events, a wait standing for the latest record when it is made; semaphores; `sync`, and queries
/// that returned true; host functions; the legacy default stream; graphs, each launch of which counts with all of its
/// nodes. Calls of the CUDA runtime's that pass sluice by are not seen; `checked::synced` tells of one. All threads of the
/// program's own count as one: what one of them has waited for, all have. The threads of sources and of CPU stages count
/// each for itself.
///
/// **When.** A race is thrown by the first call that could know of it: the one that enqueues the second access; of a stage's
/// slot, batch and declared buffers, when its callable has returned. What a destructor finds the next call throws. All that
/// was found is kept: `checked::findings()`.
///
/// **Cost.** Some microseconds of host time a step; memory by the number of streams and buffers, not of batches. Nothing is
/// enqueued and the device is asked nothing.
template <class B>
struct Checked;

/// Whether `B` is checked, itself or what it wraps.
template <class B>
inline constexpr bool is_checked = detail::IsChecked<B>::value;

} // namespace sluice

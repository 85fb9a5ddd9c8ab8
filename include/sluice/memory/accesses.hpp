/// \file
/// What kernels and libraries read and write, said to the checker. On a backend that is not checked, nothing.
#pragma once

#include <sluice/backend/stream.hpp>
#include <sluice/memory/detail/checked/declared_range.hpp>

namespace sluice {

/// Says that the work that `stream` was handed last, or is handed next before anything else, reads or writes all of
/// `memory`: a buffer, a span, or what has a `block()` or `values()`, such as a `RaggedBatch`. `what` names the
/// operation in messages. Costs nothing where `B` is not checked, see backend/checked.hpp. Can be captured: then it is said of
/// each replay.
///
/// Throws `Error` for a race with what is known already, and where there is no memory. `Stage::reads` and `Stage::writes` say the same once for all batches.
/// @{
template <Backend B, class Memory>
void reads(BasicStreamRef<B> stream, const Memory& memory, const char* what = nullptr);
template <Backend B, class Memory>
void reads(const BasicStream<B>& stream, const Memory& memory, const char* what = nullptr) {
    reads(stream.ref(), memory, what);
}
template <Backend B, class Memory>
void writes(BasicStreamRef<B> stream, const Memory& memory, const char* what = nullptr);
template <Backend B, class Memory>
void writes(const BasicStream<B>& stream, const Memory& memory, const char* what = nullptr) {
    writes(stream.ref(), memory, what);
}
/// @}

/// Says that the calling thread reads or writes all of `memory` now. Throws `Error` where work may still write it, or read
/// it. Within a callable that was given to `BasicStreamRef::enqueue` or a CPU stage, it is said of that work.
/// @{
template <class Memory>
void host_reads(const Memory& memory, const char* what = nullptr);
template <class Memory>
void host_writes(const Memory& memory, const char* what = nullptr);
/// @}

/// Gives the allocation that `memory` lies in, or otherwise its bytes, a name for messages. Throws `Error` for a null pointer.
template <class Memory>
void name_buffer(const Memory& memory, const char* name);

} // namespace sluice

#include <sluice/memory/detail/checked/accesses.inl>

// The bytes of what is said to be read or written.
#pragma once

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/detail/memory_pieces.hpp>
#include <sluice/memory/detail/placed_span.hpp>

namespace sluice::detail {

template <class Span>
checked::Range range_of_span(const Span& span, bool writes) {
    return {static_cast<checked::Key>(span.data()), addressable_bytes(piece_of_span(span)), writes};
}

/// All bytes of a buffer, a span, a contiguous range, or of what has a `block()` or `values()`.
template <class Memory>
checked::Range declared_range(const Memory& memory, bool writes) {
    if constexpr (requires { memory.block().data(); }) {
        checked::Range range = range_of_span(memory.block(), writes);
        range.partly = true; // As many rows as it holds.
        return range;
    } else if constexpr (has_span<const Memory>) {
        checked::Range range = range_of_span(placed_span(memory), writes);
        // It may be where a buffer was before.
        range.on_host = memory_kind_of<decltype(placed_span(memory))> == MemoryKind::host;
        return range;
    } else if constexpr (requires { memory.values().data(); }) {
        checked::Range range = range_of_span(memory.values(), writes);
        range.partly = true;
        return range;
    } else {
        static_assert(has_span<const Memory>,
                      "sluice: what is read or written must be a buffer, a span, a contiguous range, or have "
                      "a block() or values(), as a RaggedBatch does; of a struct name each member");
        return {};
    }
}

/// The same of what the caller of `call` has said; throws `Error` where that is no memory.
template <class Memory>
checked::Range said_range(const char* call, const Memory& memory, bool writes) {
    if constexpr (has_span<const Memory>)
        require_memory(call, "the memory", piece_of_span(placed_span(memory)));
    return declared_range(memory, writes);
}

/// What is named without a backend: that of the memory, otherwise the default one.
template <class Memory>
struct BackendOfMemory {
    using type = DefaultBackend;
};
template <class Memory>
requires requires { typename Memory::backend; }
struct BackendOfMemory<Memory> {
    using type = typename Memory::backend;
};
template <class Memory>
inline constexpr bool is_checked_memory = IsChecked<typename BackendOfMemory<Memory>::type>::value;

} // namespace sluice::detail

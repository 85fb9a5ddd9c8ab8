// Bodies of accesses.hpp.
#pragma once

namespace sluice {

template <Backend B, class Memory>
void reads([[maybe_unused]] BasicStreamRef<B> stream, [[maybe_unused]] const Memory& memory,
           [[maybe_unused]] const char* what) {
    if constexpr (detail::IsChecked<B>::value) {
        const detail::checked::Range range = detail::said_range("reads", memory, false);
        detail::checked::accesses(detail::checked::key_of(stream.get()), &range, 1,
                                  detail::checked::Op::declared, what);
    }
}

template <Backend B, class Memory>
void writes([[maybe_unused]] BasicStreamRef<B> stream, [[maybe_unused]] const Memory& memory,
            [[maybe_unused]] const char* what) {
    if constexpr (detail::IsChecked<B>::value) {
        const detail::checked::Range range = detail::said_range("writes", memory, true);
        detail::checked::accesses(detail::checked::key_of(stream.get()), &range, 1,
                                  detail::checked::Op::declared, what);
    }
}

template <class Memory>
void host_reads([[maybe_unused]] const Memory& memory, [[maybe_unused]] const char* what) {
    if constexpr (detail::is_checked_memory<Memory>) {
        const detail::checked::Range range = detail::said_range("host_reads", memory, false);
        detail::checked::host_accesses(&range, 1, detail::checked::Op::host, what);
    }
}

template <class Memory>
void host_writes([[maybe_unused]] const Memory& memory, [[maybe_unused]] const char* what) {
    if constexpr (detail::is_checked_memory<Memory>) {
        const detail::checked::Range range = detail::said_range("host_writes", memory, true);
        detail::checked::host_accesses(&range, 1, detail::checked::Op::host, what);
    }
}

template <class Memory>
void name_buffer([[maybe_unused]] const Memory& memory, [[maybe_unused]] const char* name) {
    if constexpr (detail::is_checked_memory<Memory>) {
        if (name == nullptr)
            detail::throw_no_text("name_buffer: the name");
        const detail::checked::Range range = detail::said_range("name_buffer", memory, false);
        detail::checked::name_memory(range.begin, range.bytes, name);
    }
}

} // namespace sluice

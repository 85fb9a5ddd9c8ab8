// Of the library sluice::compiled: a name that it has in common with sluice::compiled_checked. Both in one program would each give
// half of what goes together, and the linker says no instead.
#pragma once

#define SLUICE_ONE_KIND(part)                                                                                \
    namespace sluice::detail {                                                                               \
    void link_compiled_or_compiled_checked_not_both_##part() {}                                              \
    }                                                                                                        \
    static_assert(true)

// What host functions of CUDA streams have thrown.
#pragma once

#include <sluice/backend/detail/stream_failures.hpp>

namespace sluice::detail {

/// The program's. Never destroyed: a host function may run after anything else.
inline StreamFailures& host_function_failures() {
    static StreamFailures& failures = *new StreamFailures;
    return failures;
}

} // namespace sluice::detail

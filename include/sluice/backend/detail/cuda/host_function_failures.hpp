// What host functions of CUDA streams have thrown.
#pragma once

#include <sluice/backend/detail/stream_failures.hpp>

namespace sluice::detail {

/// Made before anything runs, so that a look at them asks for no guard.
inline constinit union ProgramFailures {
    constexpr ProgramFailures() : value() {}
    ProgramFailures& operator=(ProgramFailures&&) = delete;
    ~ProgramFailures() {}
    StreamFailures value;
} program_failures;

/// The program's. Never destroyed: a host function may run after anything else.
inline StreamFailures& host_function_failures() { return program_failures.value; }

} // namespace sluice::detail

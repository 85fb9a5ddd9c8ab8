#pragma once

#include "fuzz/fuzz.hpp"

namespace sluice::fuzz {

/// What every file holds, as readers of examples/common see it.
Bytes& file_in_memory();

} // namespace sluice::fuzz

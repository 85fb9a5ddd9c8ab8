/// \file
/// What the examples throw when a file or an option is not what they need.
#pragma once

#include <stdexcept>

namespace examples {

/// An option or a file that cannot be used. `what()` is one sentence that names the thing at fault, what was
/// found and what was expected; `run_main` prints it and ends the program with exit code 2.
class BadInput : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

} // namespace examples

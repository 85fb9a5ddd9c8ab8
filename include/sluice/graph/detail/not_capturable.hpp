// How work says that it cannot be captured.
#pragma once

#include <string>

#include <sluice/backend/error.hpp>

namespace sluice::detail {

/// Thrown by work while it is being captured, and not thrown when it runs eagerly: a `GraphCapture` then runs the key
/// eagerly for good, and `capture` refuses. `reason` is one sentence. A `quiet` one is not reported, and it does not
/// count as a refusal: for work of which it was known that it runs eagerly.
class NotCapturable : public Error {
public:
    explicit NotCapturable(const std::string& reason, bool quiet = false) : Error(reason), quiet_(quiet) {}

    bool quiet() const noexcept { return quiet_; }

private:
    bool quiet_;
};

} // namespace sluice::detail

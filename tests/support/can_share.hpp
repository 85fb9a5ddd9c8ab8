// Whether stages can have shares of a device here.
#pragma once

#include <sluice/backend/concept.hpp>
#include <sluice/backend/error.hpp>

namespace sluice::test {

/// Whether the current device of `B` has room for a few shares of 8 multiprocessors, and the driver can make them.
template <Backend B>
bool can_share() {
    if constexpr (ShareBackend<B>) {
        try {
            return B::share_unit() <= 8 && B::multiprocessors() > 7 * 8;
        } catch (const Error&) {
            return false;
        }
    } else {
        return false;
    }
}

} // namespace sluice::test

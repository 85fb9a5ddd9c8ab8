// The k-th call of a backend fails, for every k.
#pragma once

#include <cstdint>

#include "support/alive.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/faulty_backend.hpp"
#include "support/sanitized.hpp"

namespace sluice::test {

/// Calls `attempt()` again and again, and has the k-th call of the k-th time fail, until there is none left. A failure must be
/// an `Error`, and leave no object behind. `B` is `Faulty`. Takes each `step`-th k, and fewer under a sanitizer.
template <Backend B, class Attempt>
void fail_each_call(Attempt&& attempt, long at_least, long step = 1) {
    if (sanitized)
        step *= 3;
    const Alive before = alive_now<B>();
    bool reached = true;
    long call = 1 - step;
    while (reached && call < 5000) {
        call += step;
        CAPTURE(call);
        Fault::arm(call);
        try {
            attempt();
        } catch (const Error& error) { // while something was made
            CHECK(contains(error.what(), Fault::name));
        }
        reached = Fault::calls_made() >= call;
        Fault::disarm();
        CHECK(alive_now<B>() == before);
    }
    CHECK_FALSE(reached);
    CHECK(call > at_least);
}

/// Calls `work()`, and once more where it throws what was injected: then it must succeed.
template <class Work, class Between>
void again_after_fault(Work&& work, Between&& between) {
    try {
        work();
    } catch (const Error& error) {
        Fault::disarm();
        CHECK(contains(error.what(), Fault::name));
        between();
        work();
    }
}
template <class Work>
void again_after_fault(Work&& work) {
    again_after_fault(work, [] {});
}

} // namespace sluice::test

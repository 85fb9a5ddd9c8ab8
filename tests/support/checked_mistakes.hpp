// What a checked backend finds in a few lines of a test.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/checked.hpp>
#include <sluice/backend/error.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace sluice::test {

#if SLUICE_CHECKED
using CheckedTestBackend = TestBackend;
#else
using CheckedTestBackend = Checked<TestBackend>;
#endif

/// For fixtures: mistakes of one test are not found in another.
struct NoMistakesLeft {
    NoMistakesLeft() { checked::forget(); }
    ~NoMistakesLeft() { checked::forget(); }
};

/// What `call()` is told that it did wrong; it must be thrown, and be the only thing.
template <class Call>
checked::Finding mistake_of(Call&& call) {
    checked::forget();
    std::string thrown;
    try {
        call();
    } catch (const Error& error) {
        thrown = error.what();
    }
    const std::vector<checked::Finding> all = checked::findings();
    checked::forget();
    for (const checked::Finding& finding : all) {
        if (finding.mistake == checked::Mistake::unnecessary_wait)
            continue;
        CHECK(thrown.find(finding.message) != std::string::npos);
        return finding;
    }
    FAIL_CHECK("no mistake was found");
    return {};
}

/// Whether `call()` does nothing wrong; says what otherwise.
template <class Call>
bool is_right(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        MESSAGE(std::string(error.what()));
        checked::forget();
        return false;
    }
    return true;
}

} // namespace sluice::test

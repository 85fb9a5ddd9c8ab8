// What the tests of sources share: batches of one number, and crews of every size.
#pragma once

#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <sluice/sluice.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace sluice::test::source_case {

using B = TestBackend;
using Options = SourceOptions<B>;

/// Some workers are slower than others, and now and then.
inline void dawdle(std::size_t index) {
    if (index % 3 == 1)
        std::this_thread::sleep_for(std::chrono::microseconds(100 * (index % 5)));
}

/// A batch that says which batch it is.
inline int make_number(int) { return -1; }
inline void fill_number(std::size_t index, int& out) {
    dawdle(index);
    out = static_cast<int>(index) * 10;
}

template <class S>
std::vector<int> values_of(S& source) {
    std::vector<int> values;
    for (auto& batch : source) {
        CHECK(batch.index() == values.size());
        values.push_back(*batch);
    }
    return values;
}

inline std::vector<int> tens(std::size_t count) {
    std::vector<int> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<int>(i) * 10;
    return values;
}

template <class Check>
void for_each_crew(Check&& check) {
    for (const int workers : {0, 1, 2, 8}) {
        for (const int slots : {0, 1, 2, 5}) {
            CAPTURE(workers);
            CAPTURE(slots);
            check(Options{.workers = workers, .slots = slots});
        }
    }
}

} // namespace sluice::test::source_case

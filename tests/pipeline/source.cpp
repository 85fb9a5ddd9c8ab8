// Sources: order, states and slots, and starting again, whatever the number of workers.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sluice/sluice.hpp>

#include "pipeline/source_case.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace pipeline_source {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::source_case;

TEST_CASE("Source: batches come in order, each once, whatever the number of workers and slots") {
    for_each_crew([](Options options) {
        for (const std::size_t batches : {0u, 1u, 2u, 40u}) {
            options.batches = batches;
            Source source{make_number, fill_number, options};
            CHECK(values_of(source) == tens(batches));
            CHECK(source.next() == nullptr);
        }
    });
}

TEST_CASE("Source: each worker has a state of its own, made once") {
    for_each_crew([](Options options) {
        struct State {
            int worker;
            std::shared_ptr<int> fills; // not atomic: two workers with one state would race
            std::shared_ptr<std::atomic<bool>> in_use;
        };
        options.batches = 60;
        std::vector<State> states;
        const auto make_state = [&](int worker) {
            states.push_back({worker, std::make_shared<int>(0), std::make_shared<std::atomic<bool>>(false)});
            return states.back();
        };
        std::atomic<bool> shared{false};
        Source source{make_number, make_state,
                      [&](State& state, std::size_t index, int& out) {
                          if (state.in_use->exchange(true))
                              shared = true;
                          ++*state.fills;
                          fill_number(index, out);
                          *state.in_use = false;
                      },
                      options};
        CHECK(values_of(source) == tens(60));
        source.stop();
        int fills = 0;
        for (std::size_t worker = 0; worker < states.size(); ++worker) {
            CHECK(states[worker].worker == static_cast<int>(worker));
            fills += *states[worker].fills;
        }
        CHECK(states.size() == static_cast<std::size_t>(std::max(options.workers, 1)));
        CHECK(fills == 60);
        CHECK_FALSE(shared);
    });
}

TEST_CASE("Source: there are two slots more than workers, unless the options say how many") {
    const auto slots_made = [](Options options) {
        int made = 0;
        const auto make = [&](int slot) {
            CHECK(slot == made);
            return made++;
        };
        const Source source{make, fill_number, options};
        return made;
    };
    CHECK(slots_made({.workers = 0}) == 2);
    CHECK(slots_made({.workers = 3}) == 5);
    CHECK(slots_made({.workers = 3, .slots = 1}) == 1);
}

TEST_CASE("Source: without workers the caller's thread fills, when it asks for a batch") {
    std::set<std::thread::id> threads;
    int fills = 0;
    Source source{make_number,
                  [&](std::size_t, int&) {
                      threads.insert(std::this_thread::get_id());
                      ++fills;
                  },
                  Options{.workers = 0, .batches = 5}};
    CHECK(fills == 0);
    for (int batch = 1; source.next() != nullptr; ++batch)
        CHECK(fills == batch);
    CHECK(threads == std::set{std::this_thread::get_id()});
}

TEST_CASE("Source: rewind anywhere starts again from batch 0") {
    for_each_crew([](Options options) {
        options.batches = 6;
        Source source{make_number, fill_number, options};
        for (std::size_t taken = 0; taken <= 6; ++taken) {
            CAPTURE(taken);
            for (std::size_t batch = 0; batch < taken; ++batch)
                REQUIRE(source.next() != nullptr);
            source.rewind();
        }
        source.rewind();
        CHECK(values_of(source) == tens(6));
    });
}

TEST_CASE("Source: iteration goes on where it stands") {
    Source source{make_number, fill_number, Options{.workers = 2, .batches = 6}};
    std::vector<int> values;
    for (auto& batch : source) {
        values.push_back(*batch);
        if (values.size() == 2)
            break;
    }
    for (auto& batch : source)
        values.push_back(*batch);
    CHECK(values == tens(6));
}

TEST_CASE("Source: what the makers throw is passed on; numbers out of range are refused in a sentence") {
    const auto bad_maker = [](int number) -> int {
        throw std::runtime_error("no " + std::to_string(number));
    };
    CHECK_THROWS_WITH((Source{bad_maker, fill_number, Options{}}), "source: making slot 0 failed: no 0");
    CHECK_THROWS_WITH((Source{make_number, bad_maker, [](int&, std::size_t, int&) {}, Options{}}),
                      "source: making the state of worker 0 failed: no 0");

    const auto refused = [](const std::string& words, const Options& options) {
        CHECK(text_of([&] { Source{make_number, fill_number, options}; }) == "SourceOptions::" + words);
    };
    constexpr int most = std::numeric_limits<int>::max();
    refused("workers is -1; expected 0 (the caller fills) to 65536", {.workers = -1});
    refused("workers is 2147483647; expected 0 (the caller fills) to 65536", {.workers = most});
    refused("slots is -2; expected 0 (two more than workers) to 1048576", {.slots = -2});
    refused("slots is 2147483647; expected 0 (two more than workers) to 1048576", {.slots = most});
    refused("timed_batches is 2147483647; expected 0 to 1048576", {.timed_batches = most});
}

} // namespace pipeline_source

// Sources: order, states, ends, failures and stops, whatever the number of workers.
#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sluice/sluice.hpp>

#include "pipeline/thrown.hpp"
#include "support/backend.hpp"
#include "support/latch.hpp"

namespace pipeline_source {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Options = SourceOptions<B>;

// Some workers are slower than others, and now and then.
void dawdle(std::size_t index) {
    if (index % 3 == 1)
        std::this_thread::sleep_for(std::chrono::microseconds(100 * (index % 5)));
}

// A batch that says which batch it is.
int make_number(int) { return -1; }
void fill_number(std::size_t index, int& out) {
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

std::vector<int> tens(std::size_t count) {
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

} // namespace

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

TEST_CASE("Source: fill ends it by returning false, before that batch") {
    for_each_crew([](Options options) {
        for (const std::size_t end : {0u, 1u, 7u}) {
            for (const std::size_t batches : {Options::unlimited, std::size_t{4}}) {
                options.batches = batches;
                Source source{make_number,
                              [=](std::size_t index, int& out) {
                                  fill_number(index, out);
                                  return index < end;
                              },
                              options};
                for (int epoch = 0; epoch < 2; ++epoch) {
                    CHECK(values_of(source) == tens(std::min(end, batches)));
                    CHECK(source.next() == nullptr);
                    source.rewind();
                }
            }
        }
    });
}

TEST_CASE("Source: nothing is filled behind the end that fill has found") {
    for (const int workers : {0, 1}) {
        std::atomic<int> fills{0};
        Source source{make_number,
                      [&](std::size_t index, int&) {
                          ++fills;
                          return index < 3;
                      },
                      Options{.workers = workers, .slots = 8}};
        while (source.next() != nullptr) {
        }
        give_it_time();
        CHECK(fills.load() == 4);
    }
}

TEST_CASE("Source: what fill throws comes after the batches before it, nested; rewind starts anew") {
    for_each_crew([](Options options) {
        constexpr std::size_t batches = 9;
        options.batches = batches;
        for (const std::size_t bad : {std::size_t{0}, batches / 2, batches - 1}) {
            std::atomic<bool> broken{true};
            Source source{make_number,
                          [&](std::size_t index, int& out) {
                              fill_number(index, out);
                              if (broken && index >= bad)
                                  throw std::invalid_argument("no file " + std::to_string(index));
                          },
                          options};
            std::vector<int> values;
            const Caught error([&] {
                for (auto& batch : source)
                    values.push_back(*batch);
            });
            CHECK(values == tens(bad));
            CHECK(error.text() ==
                  "source: filling batch " + std::to_string(bad) + " failed: no file " + std::to_string(bad));
            CHECK(error.nests<std::invalid_argument>([](const auto&) { return true; }));
            // Asked again, it fails again.
            CHECK(text_of([&] { (void)source.next(); }) == error.text());

            broken = false;
            source.rewind();
            CHECK(values_of(source) == tens(batches));
        }
    });
}

TEST_CASE("Source: fill may throw anything") {
    for (const int workers : {0, 2}) {
        Source source{make_number, [](std::size_t, int&) { throw 7; }, Options{.workers = workers}};
        const Caught error([&] { (void)source.next(); });
        CHECK(error.text() == "source: filling batch 0 failed: an exception of an unknown type");
        CHECK(error.nests<int>([](int value) { return value == 7; }));
    }
}

TEST_CASE("Source: a failure behind the end of another worker's is not reported") {
    // Batch 2 ends the source while batch 3 throws.
    Source source{make_number,
                  [](std::size_t index, int& out) {
                      fill_number(index, out);
                      if (index == 3)
                          throw std::runtime_error("too late");
                      return index < 2;
                  },
                  Options{.workers = 8, .slots = 8}};
    CHECK(values_of(source) == tens(2));
    CHECK(source.next() == nullptr);
}

TEST_CASE("Source: stop ends it while workers wait for free slots") {
    for_each_crew([](Options options) {
        std::atomic<int> fills{0};
        Source source{make_number,
                      [&](std::size_t index, int& out) {
                          fill_number(index, out);
                          ++fills;
                      },
                      options};
        int slots = options.slots > 0 ? options.slots : options.workers + 2;
        REQUIRE(source.next() != nullptr);
        // All slots full: one in the caller's hands, the others waiting for it.
        if (options.workers > 0)
            CHECK(eventually([&] { return fills == slots; }));
        source.stop();
        source.stop();
        const int fills_at_stop = fills;
        CHECK(source.next() == nullptr);
        CHECK(source.next() == nullptr);
        give_it_time();
        CHECK(fills.load() == fills_at_stop);
    });
}

TEST_CASE("Source: stop before the first batch, and a source that nobody iterates") {
    for (const int workers : {0, 2}) {
        std::atomic<int> fills{0};
        const auto fill = [&](std::size_t, int&) { ++fills; };
        { Source source{make_number, fill, Options{.workers = workers}}; }
        Source source{make_number, fill, Options{.workers = workers, .batches = 3}};
        source.stop();
        CHECK(source.next() == nullptr);
        CHECK(fills.load() == 0);
        source.rewind();
        for (auto& batch : source)
            (void)batch;
        CHECK(fills.load() == 3);
    }
}

TEST_CASE("Source: stop, rewind and destruction let a batch that is being filled come to its end") {
    for (const std::string ending : {"stop", "rewind", "destruction"}) {
        CAPTURE(ending);
        ScopedLatch latch;
        std::atomic<bool> ended{false};
        std::thread opener;
        {
            Source source{make_number,
                          [&, handle = latch.handle()](std::size_t index, int&) {
                              if (index == 0)
                                  return;
                              handle.pass();
                              ended = true;
                          },
                          Options{.workers = 1, .slots = 2}};
            CHECK(source.next() != nullptr);
            REQUIRE(latch.wait_until_reached());
            opener = std::thread([&] {
                give_it_time(); // the end has begun by now
                latch.open();
            });
            CHECK_FALSE(ended);
            if (ending == "stop")
                source.stop();
            if (ending == "rewind")
                source.rewind();
            CHECK(ended == (ending != "destruction"));
        }
        CHECK(ended);
        opener.join();
        CHECK_FALSE(latch.timed_out());
    }
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

TEST_CASE("Source: what the makers throw is passed on; negative numbers are refused in a sentence") {
    const auto bad_maker = [](int number) -> int {
        throw std::runtime_error("no " + std::to_string(number));
    };
    CHECK_THROWS_WITH((Source{bad_maker, fill_number, Options{}}), "no 0");
    CHECK_THROWS_WITH((Source{make_number, bad_maker, [](int&, std::size_t, int&) {}, Options{}}), "no 0");

    CHECK(text_of([] {
              Source{make_number, fill_number, Options{.workers = -1}};
          }) == "a source needs 0 workers (the caller fills) or more, got -1");
    CHECK(text_of([] {
              Source{make_number, fill_number, Options{.slots = -2}};
          }) == "a source needs at least 1 slot (0: two more than workers), got -2");
}

} // namespace pipeline_source

// Sources: ends, failures and stops, whatever the number of workers.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sluice/sluice.hpp>

#include "pipeline/source_case.hpp"
#include "pipeline/thrown.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/latch.hpp"

namespace pipeline_source_ends {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::source_case;

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
            // The source has ended, so that a loop with a `try` around `next` does.
            CHECK_FALSE(source.next());
            CHECK(values_of(source).empty());

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
        const auto held = source.next();
        REQUIRE(held);
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

TEST_CASE("Source: stop before the first batch, and a source that is not iterated") {
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

} // namespace pipeline_source_ends

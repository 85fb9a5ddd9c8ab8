// Sources that go on behind bad batches, and fills that are told of the end.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/source_case.hpp"
#include "pipeline/thrown.hpp"
#include "support/error_text.hpp"

namespace pipeline_source_skips {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::source_case;

namespace {

void refuse(std::size_t index) { throw std::invalid_argument("no file " + std::to_string(index)); }

struct Taken {
    std::vector<std::size_t> indices;
    bool right = true;
};
template <class S>
Taken all_of(S& source) {
    Taken taken;
    for (const auto& batch : source) {
        taken.indices.push_back(batch.index());
        taken.right = taken.right && *batch == static_cast<int>(batch.index()) * 10;
    }
    return taken;
}

} // namespace

TEST_CASE("Source: batches whose fill throws are left out, the others come in order, and it says so") {
    for_each_crew([](Options options) {
        options.batches = 12;
        options.errors_in_a_row = 2;
        Source source{make_number,
                      [](std::size_t index, int& out) {
                          fill_number(index, out);
                          if (index == 0 || index == 4 || index == 5 || index == 7 || index == 11)
                              refuse(index);
                      },
                      options};
        for (int epoch = 0; epoch < 2; ++epoch) {
            CHECK(source.skipped().count == 0);
            const Taken taken = all_of(source);
            CHECK(taken.indices == std::vector<std::size_t>{1, 2, 3, 6, 8, 9, 10});
            CHECK(taken.right);
            CHECK(source.skipped().count == 5);
            CHECK(source.skipped().first == 0);
            CHECK(source.skipped().reason == "no file 0");
            source.rewind();
        }
    });
}

TEST_CASE("Source: one bad batch more in a row than may be ends it as the first one does otherwise") {
    for_each_crew([](Options options) {
        options.batches = 12;
        options.errors_in_a_row = 2;
        std::atomic<bool> broken{true};
        Source source{make_number,
                      [&](std::size_t index, int& out) {
                          fill_number(index, out);
                          if (index == 1 || (broken && index >= 3))
                              refuse(index);
                      },
                      options};
        Taken taken;
        const Caught error([&] {
            for (const auto& batch : source)
                taken.indices.push_back(batch.index());
        });
        CHECK(taken.indices == std::vector<std::size_t>{0, 2});
        CHECK(error.text() ==
              "source: 2 batches in a row were left out, and filling batch 5 failed as well: no file 5");
        CHECK(error.nests_directly<std::invalid_argument>());
        CHECK(source.skipped().count == 3);
        CHECK(source.skipped().first == 1);
        CHECK_FALSE(source.next());
        broken = false;
        source.rewind();
        CHECK(all_of(source).indices.size() == 11);
        CHECK(source.skipped().count == 1);
    });
}

TEST_CASE("Source: one of nothing but bad batches ends where its batches do") {
    for_each_crew([](Options options) {
        options.batches = 40;
        options.errors_in_a_row = Options::unlimited;
        Source source{make_number, [](std::size_t index, int&) { refuse(index); }, options};
        std::atomic<bool> over{false};
        std::thread asker([&] { // any thread may ask
            while (!over)
                (void)source.skipped();
        });
        CHECK_FALSE(source.next());
        over = true;
        asker.join();
        CHECK(source.skipped().count == 40);
    });
}

TEST_CASE("Source: the end that fill finds is one, behind bad batches as well") {
    for_each_crew([](Options options) {
        options.errors_in_a_row = 3;
        Source source{make_number,
                      [](std::size_t index, int& out) {
                          fill_number(index, out);
                          if (index == 5)
                              refuse(index);
                          return index < 6;
                      },
                      options};
        CHECK(all_of(source).indices == std::vector<std::size_t>{0, 1, 2, 3, 4});
        CHECK(source.skipped().count == 1);
    });
}

TEST_CASE("run: the results of the batches that a source has not left out") {
    struct Number {
        PinnedBuffer<int, B> value{1};
    };
    Source source{[](int) { return Number{}; },
                  [](std::size_t index, Number& out) {
                      out.value[0] = static_cast<int>(index);
                      if (index % 3 == 1)
                          refuse(index);
                  },
                  Options{.workers = 2, .batches = 9, .errors_in_a_row = 1}};
    Stage pass{"pass", [](BasicStreamRef<B> stream, const Number& in, DeviceBuffer<int, B>& out) {
                   copy(stream, out, in.value);
               }};
    Stage fetch{"fetch", [](BasicStreamRef<B> stream, const DeviceBuffer<int, B>& in, Number& out) {
                    copy(stream, out.value, in);
                }};
    Pipeline pipeline{Stages{pass, fetch},
                      Slots{[](int) { return DeviceBuffer<int, B>(1); }, [](int) { return Number{}; }}};
    std::vector<int> values;
    for (const Number& result : pipeline.run(source))
        values.push_back(result.value[0]);
    CHECK(values == std::vector<int>{0, 2, 3, 5, 6, 8});
    CHECK(pipeline.submitted() == 6);
}

TEST_CASE("Source: a fill that waits is told when its source is stopped or destroyed") {
    for (const bool with_state : {false, true}) {
        CAPTURE(with_state);
        std::atomic<int> waiting{0}, told{0};
        // From its third batch on it waits for a camera that sends nothing any more.
        const auto fill = [&](std::size_t index, int& out, FillStop stop) {
            fill_number(index, out);
            waiting += index >= 2;
            while (index >= 2 && !stop.stop_requested())
                std::this_thread::sleep_for(std::chrono::microseconds(100));
            told += index >= 2;
        };
        const auto take_two = [&](auto& source) {
            for (int i = 0; i < 2; ++i)
                CHECK(*source.next() == 10 * i);
            while (waiting == 0)
                std::this_thread::yield();
        };
        const Options options{.workers = 2, .slots = 4};
        if (with_state) {
            Source source{make_number, [](int worker) { return worker; },
                          [&](int&, std::size_t index, int& out, FillStop stop) { fill(index, out, stop); },
                          options};
            take_two(source);
            source.stop();
            CHECK_FALSE(source.next());
            source.rewind();
            take_two(source); // and goes on once it has begun anew
        } else {
            Source source{make_number, fill, options};
            take_two(source);
        }
        CHECK(told.load() >= 1);
        CHECK(told.load() == waiting.load());
    }
}

TEST_CASE("Source: one that drops leaves bad batches out, and each of the others is handed out or counted") {
    for (const WhenAhead when_ahead : {WhenAhead::wait, WhenAhead::drop_oldest, WhenAhead::drop_newest}) {
        for (const std::size_t allowed : {std::size_t{1}, std::size_t{2}}) {
            Options options{.workers = 1, .slots = 3, .batches = 60, .when_ahead = when_ahead};
            options.errors_in_a_row = allowed;
            std::size_t filled = 0;
            Source source{make_number,
                          [&](std::size_t index, int& out) {
                              if (index % 5 == 2 || index == 31)
                                  refuse(index);
                              fill_number(index, out);
                              ++filled;
                          },
                          options};
            std::size_t handed = 0, last = 0;
            bool ended = false;
            try {
                for (const auto& batch : source) {
                    CHECK((handed == 0 || batch.index() > last));
                    last = batch.index();
                    CHECK(*batch == static_cast<int>(last) * 10);
                    ++handed;
                }
            } catch (const Error&) {
                ended = true;
            }
            source.stop();
            CHECK(handed + source.dropped() == filled);
            if (when_ahead == WhenAhead::wait) {
                CHECK(ended == (allowed == 1));
                CHECK(source.dropped() <= 3); // those behind the end
            }
        }
    }
}

TEST_CASE(
    "Source: bad batches hold no place of a source that drops, and those with others between are no row") {
    for (const WhenAhead when_ahead : {WhenAhead::drop_oldest, WhenAhead::drop_newest}) {
        CAPTURE(static_cast<int>(when_ahead));
        Options options{.workers = 1, .slots = 3, .batches = 40, .when_ahead = when_ahead};
        options.errors_in_a_row = 1;
        std::atomic<std::size_t> calls{0};
        Source source{make_number,
                      [&](std::size_t index, int& out) {
                          fill_number(index, out);
                          if (++calls, index > 0 && index % 2 == 0)
                              refuse(index);
                      },
                      options};
        {
            const auto first = source.next();
            CHECK((first.index() == 0 || first.index() % 2 == 1));
            // With one slot held and no one asking, all others are filled or have failed.
            for (int tries = 0; calls < 40 && tries < 5000; ++tries)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            CHECK(calls == 40);
        }
        std::size_t handed = 1;
        for (const auto& batch : source) {
            CHECK(batch.index() % 2 == 1);
            ++handed;
        }
        CHECK(source.skipped().count == 19);
        CHECK(source.skipped().first == 2);
        CHECK(handed + source.dropped() == 21);
    }
}

TEST_CASE("Source: bad batches behind one that the caller has looked for in vain hold no place, and hide no "
          "later one") {
    for (const WhenAhead when_ahead : {WhenAhead::drop_oldest, WhenAhead::drop_newest}) {
        CAPTURE(static_cast<int>(when_ahead));
        Options options{.workers = 1, .slots = 4, .batches = 41, .when_ahead = when_ahead};
        options.errors_in_a_row = 2;
        std::atomic<bool> begin{false};
        std::atomic<std::size_t> calls{0};
        Source source{make_number,
                      [&](std::size_t index, int& out) {
                          while (!begin)
                              std::this_thread::yield();
                          fill_number(index, out);
                          if (++calls, index % 4 > 1)
                              refuse(index);
                      },
                      options};
        CHECK_FALSE(source.newest());
        begin = true;
        for (int tries = 0; calls < 41 && tries < 5000; ++tries)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        CHECK(calls == 41);
        std::size_t last = 0, handed = 0;
        while (last != 40 && handed < 40) { // the last one may still be on its way
            if (const auto batch = source.newest()) {
                last = batch.index();
                ++handed;
            }
        }
        CHECK(handed <= 2);
        CHECK(source.skipped().count == 20);
        CHECK(source.skipped().first == 2);
        CHECK(handed + source.dropped() == 21);
        CHECK_FALSE(source.next());
    }
}

TEST_CASE("Source: newest gives the last batch that is ready, also behind bad ones") {
    std::atomic<std::size_t> calls{0};
    Source source{make_number,
                  [&](std::size_t index, int& out) {
                      fill_number(index, out);
                      if (++calls, index % 2 == 1)
                          refuse(index);
                  },
                  Options{.workers = 1, .slots = 8, .batches = 6, .errors_in_a_row = 1}};
    CHECK((!source.newest() || calls > 0)); // and now the worker is at work
    while (calls < 6)
        std::this_thread::yield();
    std::size_t last = 0, handed = 0;
    while (const auto batch = source.newest()) {
        last = batch.index();
        ++handed;
    }
    CHECK(last == 4);
    CHECK(handed <= 2);
    CHECK_FALSE(source.next());
    CHECK(source.skipped().count == 3);
}

TEST_CASE("Source: one that drops ends behind more bad batches in a row than may be, whichever good ones it "
          "drops") {
    for (const std::size_t good : {std::size_t{1}, std::size_t{5}}) {
        CAPTURE(good);
        Options options{.workers = 1, .slots = 4, .batches = good + 3, .when_ahead = WhenAhead::drop_oldest};
        options.errors_in_a_row = 2;
        Source source{make_number,
                      [&](std::size_t index, int& out) {
                          fill_number(index, out);
                          if (index >= good)
                              refuse(index);
                      },
                      options};
        const Caught error([&] {
            while (source.next()) {
            }
        });
        CHECK(error.text() == "source: 2 batches in a row were left out, and filling batch " +
                                  std::to_string(good + 2) + " failed as well: no file " +
                                  std::to_string(good + 2));
        CHECK(source.skipped().count == 2);
    }
}

} // namespace pipeline_source_skips

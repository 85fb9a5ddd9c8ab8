// Sources whose workers are ahead: which batches are dropped, that each one is counted, and that no thread waits for what is read.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/camera.hpp"
#include "pipeline/chain.hpp"
#include "support/delayed_backend.hpp"
#include "support/gate.hpp"
#include "support/latch.hpp"

namespace pipeline_source_ahead {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
using Ref = BasicStreamRef<B>;
using Options = SourceOptions<B>;
constexpr std::size_t words = 32;
constexpr std::array policies{WhenAhead::wait, WhenAhead::drop_oldest, WhenAhead::drop_newest};
constexpr std::array dropping{WhenAhead::drop_oldest, WhenAhead::drop_newest};

struct Batch {
    PinnedBuffer<Word, B> buffer{words};
    operator PinnedSpan<const Word, B>() const { return buffer; }
};
const void* graph_key(const Batch& batch) { return batch.buffer.data(); }
Batch make_batch(int) { return Batch{}; }
void fill_batch(std::size_t index, Batch& out) {
    for (std::size_t i = 0; i < words; ++i)
        out.buffer[i] = input_word(index, i);
}

void check_counts(std::size_t filled, std::size_t handed, std::size_t dropped) {
    CAPTURE(filled);
    CAPTURE(handed);
    CHECK(handed + dropped == filled);
}

} // namespace

TEST_CASE("Source: ahead of the caller, its workers wait, or drop the oldest batch, or the newest") {
    for (const WhenAhead when_ahead : policies) {
        CAPTURE(static_cast<int>(when_ahead));
        Camera camera;
        Source source{make_batch,
                      [&](std::size_t index, Batch& out) {
                          camera.take();
                          fill_batch(index, out);
                      },
                      Options{.workers = 1, .slots = 3, .when_ahead = when_ahead}};
        const LetGo let_go{camera};
        CHECK_FALSE(source.newest()); // and the worker begins
        camera.let(5);
        const bool waits = when_ahead == WhenAhead::wait;
        if (waits) {
            CHECK(eventually([&] { return source.filled() == 3; }));
            CHECK(source.dropped() == 0);
        } else {
            REQUIRE(camera.is_asked_for(6));
            CHECK(source.filled() == 2);
            CHECK(source.dropped() == 3);
        }
        std::vector<std::size_t> seen;
        for (int i = 0; i < 2; ++i) {
            const auto batch = source.next();
            seen.push_back(batch.index());
            CHECK(batch->buffer[3] == input_word(batch.index(), 3));
        }
        CHECK(seen == (when_ahead == WhenAhead::drop_oldest ? std::vector<std::size_t>{3, 4}
                                                            : std::vector<std::size_t>{0, 1}));
        camera.let(1);
        CHECK(source.next().index() == (waits ? 2 : 5));
    }
}

TEST_CASE("Source: a batch that the caller waits for is not dropped") {
    for (const WhenAhead when_ahead : dropping) {
        std::size_t fills = 0;
        Source source{make_batch,
                      [&](std::size_t index, Batch& out) {
                          fill_batch(index, out);
                          ++fills;
                      },
                      Options{.workers = 1, .slots = 2, .when_ahead = when_ahead}};
        std::size_t last = 0;
        SourceBatch<Batch, B> batch, kept;
        for (std::size_t i = 0; i < 200; ++i) {
            kept = std::move(batch); // so that the worker has the other slot alone
            batch = source.next();
            REQUIRE(batch);
            CHECK((i == 0 || batch.index() > last));
            last = batch.index();
            CHECK(batch->buffer[1] == input_word(last, 1));
        }
        source.stop();
        CHECK(source.filled() == 0);
        check_counts(fills, 200, source.dropped());
    }
}

TEST_CASE(
    "Contract 1: a source that drops fills no slot that is read, and waits for none while it has others") {
    if (!streams_overlap<B>())
        return;
    Delay::set({.one_in = 0});
    for (const WhenAhead when_ahead : dropping) {
        for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
            Gate<B> gate;
            std::atomic<std::size_t> fills{0};
            Source source{make_batch,
                          [&](std::size_t index, Batch& out) {
                              fill_batch(index, out);
                              ++fills;
                              std::this_thread::sleep_for(std::chrono::microseconds(50));
                          },
                          Options{.workers = 1, .slots = 4, .when_ahead = when_ahead}};
            Chain<B> chain(2, words, 4);
            chain.before = [&](std::size_t stage, Ref stream, std::size_t batch) {
                if (stage == 0 && batch == 0)
                    gate.hold(stream);
            };
            auto pipeline = chain.pipeline<2>({.schedule = schedule});
            std::vector<std::size_t> passed;
            const auto submit = [&] {
                const auto batch = source.next();
                passed.push_back(batch.index());
                pipeline.submit(batch);
            };
            submit();
            submit();
            const std::size_t before = fills;
            CHECK(eventually(
                [&] { return fills > before + 10; })); // though two slots are read, and free for long
            gate.open();
            submit();
            submit();
            pipeline.finish();
            CHECK(chain.results(passed.size()) == chain_results(2, words, passed));
        }
    }
}

TEST_CASE("Contract 1, 4: what a source that drops hands out passes in order, and each batch is counted") {
    std::uint64_t seed = 300;
    for (const WhenAhead when_ahead : policies) {
        for (const int workers : {1, 2, 5}) {
            for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
                CAPTURE(workers);
                Delay::set({.seed = ++seed, .one_in = 3, .microseconds = 300});
                constexpr std::size_t batches = 40;
                std::atomic<std::size_t> fills{0};
                Source source{make_batch,
                              [&](std::size_t index, Batch& out) {
                                  if (index % 3 == 1)
                                      std::this_thread::sleep_for(
                                          std::chrono::microseconds(100 * (index % 5)));
                                  fill_batch(index, out);
                                  ++fills;
                              },
                              Options{.workers = workers, .batches = batches, .when_ahead = when_ahead}};
                Chain<B> chain(2, words, batches);
                auto pipeline = chain.pipeline<2>({.schedule = schedule});
                std::vector<std::size_t> passed;
                for (auto& batch : source) {
                    CHECK((passed.empty() || batch.index() > passed.back()));
                    passed.push_back(batch.index());
                    pipeline.submit(batch);
                }
                pipeline.finish();
                CHECK(chain.results(passed.size()) == chain_results(2, words, passed));
                CHECK(fills.load() == batches);
                check_counts(batches, passed.size(), source.dropped());
                if (when_ahead == WhenAhead::wait)
                    CHECK(source.dropped() == 0);
            }
        }
    }
    Delay::set({.one_in = 0});
}

TEST_CASE("Source: a stop in the middle, and a new start, lose no count") {
    for (const WhenAhead when_ahead : policies) {
        for (const int workers : {1, 3}) {
            std::atomic<std::size_t> fills{0};
            Source source{make_batch,
                          [&](std::size_t index, Batch& out) {
                              fill_batch(index, out);
                              ++fills;
                          },
                          Options{.workers = workers, .slots = 5, .when_ahead = when_ahead}};
            for (int round = 0; round < 10; ++round) {
                std::size_t handed = 0;
                auto kept = source.next();
                for (++handed; handed < 4; ++handed)
                    CHECK(source.next().index() > kept.index());
                source.stop();
                source.stop();
                CHECK_FALSE(source.next());
                CHECK_FALSE(source.newest());
                CHECK(source.filled() == 0);
                check_counts(fills, handed, source.dropped());
                if (round % 2 == 0)
                    kept = {};
                source.rewind();
                fills = 0;
                CHECK(source.dropped() == 0);
            }
        }
    }
}

TEST_CASE("Contract 5: a fill that fails ends a source that drops, behind what was filled before") {
    for (const WhenAhead when_ahead : policies) {
        for (const bool throws : {true, false}) {
            CAPTURE(throws);
            std::size_t fills = 0;
            Source source{make_batch,
                          [&](std::size_t index, Batch& out) {
                              if (index == 7 && throws)
                                  throw std::runtime_error("no picture");
                              if (index == 7)
                                  return false;
                              fill_batch(index, out);
                              ++fills;
                              return true;
                          },
                          Options{.workers = 1, .slots = 3, .when_ahead = when_ahead}};
            std::size_t handed = 0;
            const auto all = [&] {
                for (const auto& batch : source) {
                    CHECK(batch.index() < 7);
                    ++handed;
                }
            };
            if (throws)
                CHECK(text_of(all).find("filling batch 7 failed: no picture") != std::string::npos);
            else
                all();
            CHECK_FALSE(source.next());
            CHECK(fills == 7);
            check_counts(7, handed, source.dropped());
        }
    }
}

TEST_CASE("Source: batches behind the end count as dropped") {
    for (const WhenAhead when_ahead : policies) {
        Camera camera;
        std::atomic<bool> second{false};
        Source source{make_batch,
                      [&](std::size_t index, Batch& out) {
                          fill_batch(index, out);
                          if (index == 0)
                              camera.take();
                          second = second || index == 1;
                          return index != 0;
                      },
                      Options{.workers = 2, .slots = 4, .batches = 2, .when_ahead = when_ahead}};
        const LetGo let_go{camera};
        CHECK_FALSE(source.newest());
        REQUIRE(eventually([&] { return second.load(); }));
        CHECK(source.filled() == 0); // batch 0 comes first
        camera.let(1);
        CHECK_FALSE(source.next());
        CHECK(eventually([&] { return source.dropped() == 1; }));
        source.stop();
        CHECK(source.dropped() == 1);
    }
}

TEST_CASE("Source: newest gives the last of those that are ready, without a wait") {
    Camera camera;
    Source source{make_batch,
                  [&](std::size_t index, Batch& out) {
                      camera.take();
                      if (index == 5)
                          throw std::runtime_error("no picture");
                      fill_batch(index, out);
                  },
                  Options{.workers = 1, .slots = 4}};
    const LetGo let_go{camera};
    CHECK_FALSE(source.newest());
    camera.let(3);
    REQUIRE(eventually([&] { return source.filled() == 3; }));
    {
        const auto batch = source.newest();
        CHECK(batch.index() == 2);
        CHECK(batch->buffer[2] == input_word(2, 2));
        CHECK(source.dropped() == 2);
        CHECK_FALSE(source.newest());
    }
    camera.let(3);
    REQUIRE(eventually([&] { return source.filled() == 2; }));
    CHECK(source.newest().index() == 4);
    CHECK(source.dropped() == 3);
    CHECK(eventually([&] {
        return text_of([&] { (void)source.newest(); }).find("filling batch 5 failed: no picture") !=
               std::string::npos;
    }));
    CHECK_FALSE(source.newest());
    CHECK_FALSE(source.next());

    Source by_caller{make_batch, fill_batch, Options{.workers = 0, .batches = 2}};
    CHECK(by_caller.newest().index() == 0);
    CHECK(by_caller.newest().index() == 1);
    CHECK_FALSE(by_caller.newest());
}

TEST_CASE("Source: one that drops goes on after a timeout") {
    using namespace std::chrono_literals;
    for (const WhenAhead when_ahead : dropping) {
        Camera camera;
        Source source{
            make_batch,
            [&](std::size_t index, Batch& out) {
                camera.take();
                fill_batch(index, out);
            },
            Options{.workers = 1, .slots = 2, .batches = 2, .timeout = 5ms, .when_ahead = when_ahead}};
        const LetGo let_go{camera};
        CHECK(text_of([&] { (void)source.next(); }).find("was not ready within 5 ms") != std::string::npos);
        camera.let(2);
        REQUIRE(eventually([&] { return source.filled() + source.dropped() == 2; }));
        CHECK(source.next());
    }
}

TEST_CASE("Source: one that drops needs workers, and more slots than workers") {
    const auto make = [](Options options) {
        return text_of([&] { const Source source{make_batch, fill_batch, options}; });
    };
    for (const WhenAhead when_ahead : dropping) {
        CHECK(make({.workers = 0, .slots = 3, .when_ahead = when_ahead}).find("got 0 workers and 3 slots") !=
              std::string::npos);
        CHECK(make({.workers = 1, .slots = 1, .when_ahead = when_ahead}) ==
              "a source that drops batches needs workers, and more slots than workers: one that each of them "
              "fills, and one whose batch waits; got 1 worker and 1 slot");
        CHECK(make({.workers = 1, .slots = 2, .when_ahead = when_ahead}).empty());
    }
}

TEST_CASE("Source: a pipeline holds no batch back for one that may be dropped") {
    Source source{make_batch, fill_batch,
                  Options{.workers = 1, .slots = 8, .batches = 8, .when_ahead = WhenAhead::drop_oldest}};
    const auto batch = source.next();
    REQUIRE(eventually([&] { return source.filled() + source.dropped() == 7; }));
    const auto hold = batch.hold();
    CHECK(hold.ready_behind() == 0);
    hold.give_up();
}

TEST_CASE("Source: notes of a source that drops are of batches that were filled, in order") {
    for (const WhenAhead when_ahead : dropping) {
        Camera camera;
        std::atomic<std::size_t> fills{0};
        Source source{
            make_batch,
            [&](std::size_t index, Batch& out) {
                if (index == 0)
                    camera.take(); // while the other worker fills as many as there are notes, and more
                fill_batch(index, out);
                ++fills;
            },
            Options{.workers = 2, .slots = 4, .when_ahead = when_ahead, .timed_batches = 4}};
        const LetGo let_go{camera};
        CHECK_FALSE(source.newest());
        REQUIRE(eventually([&] { return fills > 200; }));
        camera.let(1);
        std::vector<std::size_t> handed;
        for (int i = 0; i < 3; ++i)
            handed.push_back(source.next().index());
        source.stop();
        std::size_t last = 0, given = 0;
        for (const FillTime& time : source.fill_times()) {
            CHECK(time.batch > last); // that of batch 0 has gone to others
            last = time.batch;
            given += time.given > 0 ? 1u : 0u;
            CHECK((time.given == 0 || std::count(handed.begin(), handed.end(), time.batch) == 1));
        }
        CHECK(given <= 3);
    }
}

} // namespace pipeline_source_ahead

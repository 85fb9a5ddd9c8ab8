// Sources: threads that share a batch, or give it up while its source starts over or goes. For the thread sanitizer above all.
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/source_case.hpp"
#include "support/no_records.hpp"

namespace pipeline_source_threads {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::source_case;

TEST_CASE("Source: as many fills are noted as were asked for, also where there are fewer slots") {
    for (const int slots : {2, 9}) {
        auto options = Options{.workers = 0, .slots = slots, .batches = 900};
        const auto count_of = [&](int timed) {
            options.timed_batches = timed;
            Source source{make_number, fill_number, options};
            while (source.next()) {
            }
            return source.fill_times().size();
        };
        CHECK(count_of(40) >= 40);
        CHECK(count_of(5) >= static_cast<std::size_t>(slots));
        CHECK(count_of(200) >= 200);
    }
}

TEST_CASE("Source: threads hold one batch, release it and give it up at the same time") {
    for (int round = 0; round < 20; ++round) {
        const BasicStream<B> stream, streams[2];
        auto options = Options{.workers = 1, .slots = 3, .batches = 6};
        options.timed_batches = 4;
        Source source{make_number, fill_number, options};
        const auto batch = source.next();
        REQUIRE(batch);
        const SourceHold<B> hold = batch.hold();
        std::vector<std::thread> threads;
        for (const BasicStream<B>& other : streams) {
            threads.emplace_back([&hold, &other] {
                for (int i = 0; i < 20; ++i) {
                    const SourceHold<B> mine = hold.hold_elsewhere();
                    mine.release(other);
                    mine.give_up();
                }
            });
        }
        for (int i = 0; i < 20; ++i) {
            batch.release(stream);
            (void)source.fill_times();
        }
        for (std::thread& thread : threads)
            thread.join();
        hold.give_up();
    }
}

TEST_CASE("Source: another thread gives a batch up while the source starts over, stops, or goes") {
    for (int round = 0; round < 100; ++round) {
        std::optional<std::thread> thread;
        {
            Source source{make_number, fill_number, Options{.workers = 1, .slots = 2, .batches = 4}};
            auto batch = source.next();
            REQUIRE(batch);
            const SourceHold<B> hold = batch.hold();
            const SourceHold<B> elsewhere = hold.hold_elsewhere();
            hold.give_up();
            batch = {};
            thread.emplace([elsewhere, round] {
                std::this_thread::sleep_for(std::chrono::microseconds(10 * (round % 10)));
                elsewhere.give_up();
            });
            if (round % 3 == 0) {
                source.rewind();
                CHECK(*source.next() == 0);
            } else if (round % 3 == 1) {
                source.stop();
                CHECK(source.filled() == 0);
            }
        }
        thread->join();
    }
}

TEST_CASE("Source: threads release one batch where no event can be recorded") {
    using F = Hooked<B, NoRecords>;
    for (int round = 0; round < 50; ++round) {
        const BasicStream<F> streams[2];
        Source source{make_number, fill_number, SourceOptions<F>{.workers = 1, .slots = 2, .batches = 4}};
        const auto batch = source.next();
        REQUIRE(batch);
        const SourceHold<F> hold = batch.hold();
        std::vector<std::thread> threads;
        std::optional<RecordsFail> fail(std::in_place);
        for (const BasicStream<F>& stream : streams) {
            threads.emplace_back([&hold, &stream] {
                for (int i = 0; i < 5; ++i) {
                    try {
                        hold.release(stream);
                    } catch (const Error&) {
                        // It has waited for the stream.
                    }
                }
            });
        }
        for (std::thread& thread : threads)
            thread.join();
        fail.reset();
        hold.give_up();
    }
}

} // namespace pipeline_source_threads

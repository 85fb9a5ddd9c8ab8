// Pipeline::run: the results of the last stage, in order.
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/results_case.hpp"
#include "support/error_text.hpp"

namespace pipeline_results {

namespace {

// A range that can be gone through once: its one batch is filled again for each.
struct Once {
    struct Iterator {
        using value_type = PinnedBuffer<Word, B>;
        using difference_type = std::ptrdiff_t;
        Once* range;
        value_type& operator*() const { return range->batch; }
        Iterator& operator++() {
            range->fill();
            return *this;
        }
        void operator++(int) { ++*this; }
        bool operator==(const Iterator&) const { return range->index == 9; }
    };
    PinnedBuffer<Word, B> batch{words};
    std::size_t index = 0;
    Iterator begin() {
        fill_slot(index, batch);
        return {this};
    }
    Iterator end() { return {this}; }
    void fill() { fill_slot(++index, batch); }
};

} // namespace

TEST_CASE("run: all results, in order, each still there when the next ones are under way") {
    for_each_way([]<class D>(PipelineOptions options) {
        for (const std::size_t count : {0u, 1u, 2u, 3u, 30u}) {
            for (const int source_slots : {1, 2, 4}) {
                CAPTURE(count);
                CAPTURE(source_slots);
                D dag(words);
                options.slots = slots_for(dag, options);
                auto pipeline = dag.pipeline(options);
                Source source{make_slot, fill_slot, source_of(count, source_slots)};
                std::vector<Word> results, expected;
                for (const auto& result : pipeline.run(source)) {
                    if (results.size() % (5 * words) == 0) // a slow consumer
                        std::this_thread::sleep_for(std::chrono::microseconds(300));
                    append(results, result);
                }
                (void)dag.expected(batches_from(0, count), &expected);
                CHECK(results == expected);
                CHECK(pipeline.submitted() == count);
            }
        }
    });
}

TEST_CASE(
    "run: a loop that is left early loses no batch of the source, no result, and none of the stages' work") {
    for_each_way([]<class D>(PipelineOptions options) {
        for (const std::size_t first : {1u, 2u, 5u}) {
            CAPTURE(first);
            D dag(words);
            options.slots = slots_for(dag, options);
            auto pipeline = dag.pipeline(options);
            Source source{make_slot, fill_slot, source_of(20)};
            std::size_t seen = 0;
            for (const auto& result : pipeline.run(source)) {
                (void)result;
                if (++seen == first)
                    break;
            }
            CHECK(pipeline.submitted() < first + static_cast<std::size_t>(options.slots));
            std::vector<Word> results, expected;
            for (const auto& result : pipeline.run(source))
                append(results, result);
            pipeline.finish();
            CHECK(pipeline.submitted() == 20);
            CHECK(dag.memories() == dag.expected(batches_from(0, 20), &expected));
            expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(first * words));
            CHECK(results == expected);
        }
    });
}

TEST_CASE("run: what a loop that was left early has not seen comes first in a loop over another source") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        Source one{make_slot, fill_slot, source_of(20)}, other{make_slot, fill_slot, source_of(20)};
        for (const auto& result : pipeline.run(one)) {
            (void)result;
            break;
        }
        auto batches = batches_from(0, pipeline.submitted());
        for (const auto& batch : batches_from(0, 20))
            batches.push_back(batch);
        std::vector<Word> results, expected;
        for (const auto& result : pipeline.run(other))
            append(results, result);
        pipeline.finish();
        CHECK(dag.memories() == dag.expected(batches, &expected));
        expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(words));
        CHECK(results == expected);
    });
}

TEST_CASE("run: drain gives what a loop that was left early has not seen, once, also behind a finish") {
    for_each_way([]<class D>(PipelineOptions options) {
        for (const bool finish : {false, true}) {
            D dag(words);
            options.slots = slots_for(dag, options);
            auto pipeline = dag.pipeline(options);
            Source source{make_slot, fill_slot, source_of(20)};
            std::vector<Word> results, expected;
            for (const auto& result : pipeline.run(source)) {
                append(results, result);
                if (results.size() == 3 * words)
                    break;
            }
            if (finish)
                pipeline.finish();
            for (const auto& result : pipeline.drain())
                append(results, result);
            (void)dag.expected(batches_from(0, pipeline.submitted()), &expected);
            CHECK(results == expected);
            for (const auto& result : pipeline.drain())
                append(results, result);
            CHECK(results == expected);
        }
    });
}

TEST_CASE("run: what a loop has left is gone after a reset, however many batches are submitted then") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        Source source{make_slot, fill_slot, source_of(20)};
        for (const auto& result : pipeline.run(source)) {
            (void)result;
            break;
        }
        const std::size_t left = pipeline.submitted();
        pipeline.reset();
        for (std::size_t batch = 0; batch < left; ++batch)
            pipeline.submit(source.next());
        std::size_t seen = 0;
        for (const auto& result : pipeline.drain()) {
            (void)result;
            ++seen;
        }
        CHECK(seen == 0); // they are submits of the caller's own
        pipeline.finish();
    });
}

TEST_CASE("run: a submit takes the slots of what a loop has left") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        const Inputs<B> inputs(1, words);
        Source source{make_slot, fill_slot, source_of(20)};
        for (const auto& result : pipeline.run(source)) {
            (void)result;
            break;
        }
        pipeline.submit(inputs[0]).stays();
        const std::size_t submitted = pipeline.submitted();
        std::vector<Word> results, expected;
        for (const auto& result : pipeline.run(source))
            append(results, result);
        std::vector<std::size_t> batches = batches_from(0, 20);
        batches.insert(batches.begin() + static_cast<std::ptrdiff_t>(submitted) - 1, 0);
        (void)dag.expected(batches, &expected);
        expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(submitted * words));
        CHECK(results == expected);
    });
}

TEST_CASE(
    "run: what the source throws comes behind the results of all batches before it, and ends the loop") {
    for_each_way([]<class D>(PipelineOptions options) {
        for (const std::size_t failing : {0u, 1u, 10u}) {
            CAPTURE(failing);
            D dag(words);
            options.slots = slots_for(dag, options);
            auto pipeline = dag.pipeline(options);
            const auto fill = [&](std::size_t index, PinnedBuffer<Word, B>& out) {
                if (index == failing)
                    throw std::runtime_error("no file");
                fill_slot(index, out);
            };
            Source source{make_slot, fill, source_of(20)};
            std::vector<Word> results, expected;
            const auto all = [&] {
                for (const auto& result : pipeline.run(source))
                    append(results, result);
            };
            CHECK(contains(text_of(all),
                           "source: filling batch " + std::to_string(failing) + " failed: no file"));
            (void)dag.expected(batches_from(0, failing), &expected);
            CHECK(results == expected);
            CHECK_FALSE(pipeline.failed());
            CHECK_NOTHROW(all()); // The source has ended.
            CHECK(results == expected);
        }
    });
}

TEST_CASE("run: a range that can be gone through once may fill its batch again for the next") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        Once once;
        std::vector<Word> results, expected;
        for (const auto& result : pipeline.run(once))
            append(results, result);
        (void)dag.expected(batches_from(0, 9), &expected);
        CHECK(results == expected);
    });
}

TEST_CASE("run: epochs, with submits in between") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        const Inputs<B> inputs(2, words);
        Source source{make_slot, fill_slot, source_of(6)};
        std::vector<std::size_t> order;
        std::vector<Word> results, all, expected;
        for (int epoch = 0; epoch < 3; ++epoch) {
            for (const auto& result : pipeline.run(source)) {
                append(results, result);
                order.push_back(order.size());
            }
            source.rewind();
            pipeline.submit(inputs[1]).stays();
        }
        pipeline.finish();
        std::vector<std::size_t> batches;
        for (int epoch = 0; epoch < 3; ++epoch) {
            for (std::size_t batch = 0; batch < 6; ++batch)
                batches.push_back(batch);
            batches.push_back(1);
        }
        CHECK(dag.memories() == dag.expected(batches, &all));
        for (std::size_t number = 0; number < batches.size(); ++number) {
            if (number % 7 != 6)
                expected.insert(expected.end(), all.begin() + static_cast<std::ptrdiff_t>(number * words),
                                all.begin() + static_cast<std::ptrdiff_t>((number + 1) * words));
        }
        CHECK(results == expected);
    });
}

TEST_CASE("run: what was submitted before the first loop is through, in order") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        const Inputs<B> inputs(3, words);
        for (std::size_t number = 0; number < 3; ++number)
            pipeline.submit(inputs[number]).stays();
        Source source{make_slot, fill_slot, source_of(4)};
        std::vector<Word> results, all;
        for (const auto& result : pipeline.run(source))
            append(results, result);
        pipeline.finish();
        CHECK(dag.memories() == dag.expected({0, 1, 2, 0, 1, 2, 3}, &all));
        CHECK(results == std::vector<Word>(all.begin() + 3 * words, all.end()));
    });
}

TEST_CASE("run: over batches that are no source's") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        const Inputs<B> inputs(9, words);
        std::vector<PinnedSpan<const Word, B>> batches;
        for (std::size_t batch = 0; batch < 9; ++batch)
            batches.push_back(inputs[batch]);
        std::vector<Word> results, expected;
        for (const auto& result : pipeline.run(batches))
            append(results, result);
        (void)dag.expected(batches_from(0, 9), &expected);
        CHECK(results == expected);
    });
}

TEST_CASE("run: a stage that throws fails the loop, and reset makes it run again") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        Delay::set({.one_in = 0});
        bool throws = true;
        struct Result {
            PinnedBuffer<Word, B> words;
        };
        std::size_t calls = 0;
        const auto only = [&](BasicStreamRef<B> stream, PinnedSpan<const Word, B> in, Result& out) {
            if (throws && calls++ == 5)
                throw std::runtime_error("no");
            ops::step(stream.get(), out.words.data(), in.data(), out.words.data(), words);
        };
        Pipeline pipeline{Stages{Stage{"only", only, StageOptions<B>{.graphed = false}}},
                          Slots{[](int) { return Result{PinnedBuffer<Word, B>(words)}; }},
                          dag_options(schedule, 2, 0)};
        Source source{make_slot, fill_slot, source_of(12)};
        std::size_t seen = 0;
        const auto all = [&] {
            for (const auto& result : pipeline.run(source)) {
                (void)result;
                ++seen;
            }
        };
        const auto error = caught_error(all);
        REQUIRE(error);
        CHECK(error->stage() == "only");
        CHECK(error->batch() == 5);
        CHECK(seen <= 5);
        CHECK(seen >= 4);
        Source nothing{make_slot, fill_slot, source_of(0)};
        CHECK(text_of([&] { (void)pipeline.run(nothing).begin(); }).starts_with("run: "));
        throws = false;
        pipeline.reset();
        seen = 0;
        all();
        CHECK(seen == 6); // The batch in hand is lost.
    }
}

} // namespace pipeline_results

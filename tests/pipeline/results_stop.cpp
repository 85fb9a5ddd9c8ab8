// Pipeline::run, told to stop: no batch is lost, and no result.
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/results_case.hpp"

namespace pipeline_results_stop {

using namespace sluice;
using namespace sluice::test;
using namespace pipeline_results;

namespace {

auto make_source(std::size_t batches, int workers = 1) {
    return Source{make_slot, fill_slot, source_of(batches, 4, workers)};
}

} // namespace

TEST_CASE(
    "run: once it is told to stop it takes no batch, and gives the results of all that were submitted") {
    for_each_way([]<class D>(PipelineOptions options) {
        for (const std::size_t last : {0u, 1u, 5u}) {
            CAPTURE(last);
            D dag(words);
            options.slots = slots_for(dag, options);
            auto pipeline = dag.pipeline(options);
            auto source = make_source(20);
            std::stop_source stop;
            std::vector<Word> results, expected;
            std::size_t submitted = 0;
            if (last == 0)
                stop.request_stop();
            for (const auto& result : pipeline.run(source, stop.get_token())) {
                append(results, result);
                if (results.size() == last * words) {
                    stop.request_stop();
                    submitted = pipeline.submitted();
                }
            }
            CHECK(pipeline.submitted() == submitted);
            CHECK(submitted < last + static_cast<std::size_t>(options.slots));
            (void)dag.expected(batches_from(0, submitted), &expected);
            CHECK(results == expected);

            // The rest is the source's still.
            for (const auto& result : pipeline.run(source))
                append(results, result);
            expected.clear();
            (void)dag.expected(batches_from(0, 20), &expected);
            CHECK(results == expected);
        }
    });
}

TEST_CASE("run: a source without workers fills a batch behind the result as many batches before as there are "
          "slots") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        const auto slots = static_cast<std::size_t>(options.slots);
        std::size_t given = 0, wrong = 0;
        Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                      [&](std::size_t index, PinnedBuffer<Word, B>& out) {
                          wrong += given != (index < slots ? 0 : index - slots + 1);
                          for (std::size_t i = 0; i < words; ++i)
                              out[i] = input_word(index, i);
                      },
                      SourceOptions<B>{.workers = 0, .slots = 4, .batches = 12}};
        std::vector<Word> results, expected;
        for (const auto& result : pipeline.run(source)) {
            append(results, result);
            ++given;
        }
        CHECK(wrong == 0);
        CHECK(given == 12);
        (void)dag.expected(batches_from(0, 12), &expected);
        CHECK(results == expected);
    });
}

TEST_CASE("run: a fill that waits ends the source when it sees the stop, and no result is lost") {
    std::stop_source stop;
    std::atomic<bool> waits{false};
    Dag<B, DagStage{0, true}, DagStage{1}> dag(words);
    auto pipeline = dag.pipeline(dag_options(Schedule::overlapped, 2, 0));
    Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                  [&, token = stop.get_token()](std::size_t index, PinnedBuffer<Word, B>& out) {
                      for (std::size_t i = 0; i < words; ++i)
                          out[i] = input_word(index, i);
                      for (waits = index == 5; index == 5 && !token.stop_requested();)
                          std::this_thread::yield();
                      return index < 5;
                  },
                  SourceOptions<B>{.workers = 1, .slots = 2}};
    std::thread other([&] {
        while (!waits)
            std::this_thread::yield();
        stop.request_stop();
    });
    std::vector<Word> results, expected;
    for (const auto& result : pipeline.run(source, stop.get_token()))
        append(results, result);
    other.join();
    CHECK(pipeline.submitted() <= 5);
    (void)dag.expected(batches_from(0, pipeline.submitted()), &expected);
    CHECK(results == expected);
}

TEST_CASE("run: a stage stops it, whatever thread it is called on") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        struct Number {
            PinnedBuffer<Word, B> value{words};
        };
        std::atomic<bool> stop{false};
        std::atomic<Word> looked{0};
        Stage take{"take", [](BasicStreamRef<B> stream, const PinnedBuffer<Word, B>& in, Number& out) {
                       ops::step(stream.get(), out.value.data(), in.data(), out.value.data(), words);
                   }};
        Stage look{"look", [&](const Number&, Number& out) {
                       out.value[0] = looked++;
                       stop = stop || looked == 6;
                   }};
        AnyPipeline<PinnedBuffer<Word, B>, B> pipeline{
            Stages{take, look}, Slots{[](int) { return Number{}; }, [](int) { return Number{}; }},
            PipelineOptions{.schedule = schedule}};
        auto source = make_source(1000);
        Word seen = 0;
        for (const Number& result : pipeline.template run<Number>(source, [&] { return stop.load(); }))
            CHECK(result.value[0] == seen++);
        CHECK(seen >= 6);
        CHECK(seen <= 8);
        CHECK(pipeline.submitted() == seen);
        pipeline.finish();
        CHECK(looked == seen);
    }
}

TEST_CASE("run: what has said once that it is to stop is not asked again") {
    struct Number {
        PinnedBuffer<Word, B> value{words};
    };
    AnyPipeline<PinnedBuffer<Word, B>, B> pipeline{
        Stages{Stage{"take", [](BasicStreamRef<B> stream, const PinnedBuffer<Word, B>& in,
                                Number& out) { copy(stream, out.value, in); }}},
        Slots{[](int) { return Number{}; }}, PipelineOptions{}};
    auto source = make_source(1000);
    int asked = 0;
    std::size_t seen = 0;
    for (const Number& result : pipeline.template run<Number>(source, [&] { return ++asked == 5; })) {
        (void)result;
        ++seen;
    }
    CHECK(asked == 5);
    CHECK(seen == 4);
    pipeline.finish();
}

TEST_CASE("run: what the stop request throws comes as it is, and loses no batch") {
    struct Number {
        PinnedBuffer<Word, B> value{words};
    };
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        AnyPipeline<PinnedBuffer<Word, B>, B> pipeline{
            Stages{Stage{"take", [](BasicStreamRef<B> stream, const PinnedBuffer<Word, B>& in,
                                    Number& out) { copy(stream, out.value, in); }}},
            Slots{[](int) { return Number{}; }}, PipelineOptions{.schedule = schedule}};
        auto source = make_source(20);
        int asked = 0;
        std::size_t seen = 0;
        const auto loop = [&] {
            for (const Number& result : pipeline.template run<Number>(source, [&] {
                     if (++asked == 7)
                         throw std::out_of_range("as asked");
                     return false;
                 })) {
                (void)result;
                ++seen;
            }
        };
        CHECK_THROWS_WITH_AS(loop(), "as asked", std::out_of_range);
        CHECK_FALSE(pipeline.failed());
        CHECK(pipeline.submitted() == 6);
        loop();
        CHECK(seen == 20);
    }
}

} // namespace pipeline_results_stop

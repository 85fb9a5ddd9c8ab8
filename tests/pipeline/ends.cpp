// Contract 4: ends are exact.
#include <vector>

#include "pipeline/chain.hpp"
#include "support/delayed_backend.hpp"

namespace pipeline_ends {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
constexpr std::size_t words = 40;

// Each combination of schedule, slots and stages that the ends depend on.
template <class Check>
void for_each_pipeline(Check&& check) {
    std::uint64_t seed = 0;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int slots : {1, 2, 3}) {
            PipelineOptions options{.schedule = schedule, .slots = slots};
            options.graphs.on_refusal = nullptr; // batches that never come again are refused in the end
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(slots);
            Delay::set({.seed = ++seed, .one_in = 3, .microseconds = 400});
            check.template operator()<1>(options);
            check.template operator()<2>(options);
            check.template operator()<3>(options);
        }
    }
}

template <class P, class Batch>
concept Submittable = requires(P& pipeline, Batch&& batch) {
    pipeline.submit(std::forward<Batch>(batch));
};

} // namespace

TEST_CASE("Contract 4: zero batches are no batches, however often they are finished") {
    for_each_pipeline([]<int S>(const PipelineOptions& options) {
        Chain<B> chain(S, words, 1);
        { auto unused = chain.template pipeline<S>(options); }
        auto pipeline = chain.template pipeline<S>(options);
        pipeline.flush();
        pipeline.finish();
        pipeline.finish();
        pipeline.flush();
        pipeline.reset();
        pipeline.finish();
        CHECK(pipeline.submitted() == 0);
        CHECK_FALSE(pipeline.failed());
        CHECK(chain.calls(0) == 0);
        CHECK(chain.results(0) == chain_results(S, words, {}));
    });
}

TEST_CASE("Contract 4: flush and finish anywhere leave out nothing and repeat nothing") {
    constexpr std::size_t batches = 9;
    const Inputs<B> inputs(batches, words);
    const auto expected = [](int stages) { return chain_results(stages, words, batches_from(0, batches)); };
    for_each_pipeline([&]<int S>(const PipelineOptions& options) {
        for (std::size_t end = 0; end <= batches; end += 3) {
            CAPTURE(S);
            CAPTURE(end);
            Chain<B> chain(S, words, batches);
            auto pipeline = chain.template pipeline<S>(options);
            for (std::size_t batch = 0; batch < batches; ++batch) {
                if (batch == end)
                    pipeline.flush();
                if (batch == end + 1) {
                    pipeline.finish();
                    pipeline.finish();
                }
                pipeline.submit(inputs[batch]).stays();
                if (batch == end)
                    pipeline.flush();
            }
            pipeline.finish();
            pipeline.finish();
            CHECK(pipeline.submitted() == batches);
            CHECK(chain.results(batches) == expected(S));
        }
        // After every batch.
        Chain<B> chain(S, words, batches);
        auto pipeline = chain.template pipeline<S>(options);
        for (std::size_t batch = 0; batch < batches; ++batch) {
            pipeline.submit(inputs[batch]).stays();
            batch % 2 == 0 ? pipeline.finish() : pipeline.flush();
        }
        pipeline.finish();
        CHECK(chain.results(batches) == expected(S));
    });
}

TEST_CASE("Contract 4: finish waits for every stage of every batch") {
    const Inputs<B> inputs(4, words);
    for_each_pipeline([&]<int S>(const PipelineOptions& options) {
        Chain<B> chain(S, words, 4);
        chain.before = [](std::size_t stage, BasicStreamRef<B> stream, std::size_t batch) {
            if (batch == 3 && stage + 1 == S)
                ops::spin(stream.get(), 5000);
        };
        auto pipeline = chain.template pipeline<S>(options);
        for (std::size_t batch = 0; batch < 4; ++batch)
            pipeline.submit(inputs[batch]).stays();
        pipeline.finish();
        for (std::size_t stage = 0; stage < S; ++stage)
            CHECK(pipeline.stream(stage).is_done());
        CHECK(chain.results(4) == chain_results(S, words, batches_from(0, 4)));
    });
}

TEST_CASE("Contract 4: a pipeline that is destroyed without finish completes what it was given") {
    const Inputs<B> inputs(5, words);
    for_each_pipeline([&]<int S>(const PipelineOptions& options) {
        Chain<B> chain(S, words, 5);
        {
            auto pipeline = chain.template pipeline<S>(options);
            for (std::size_t batch = 0; batch < 5; ++batch)
                pipeline.submit(inputs[batch]).stays();
        }
        CHECK(chain.results(5) == chain_results(S, words, batches_from(0, 5)));
    });
}

TEST_CASE("Contract 4: an exhausted source ends, and a pipeline is used again after finish") {
    constexpr std::size_t batches = 5;
    for_each_pipeline([&]<int S>(const PipelineOptions& options) {
        Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                      [](std::size_t index, PinnedBuffer<Word, B>& out) {
                          for (std::size_t i = 0; i < words; ++i)
                              out[i] = input_word(index, i);
                      },
                      SourceOptions<B>{.workers = 2, .batches = batches}};
        Chain<B> chain(S, words, 2 * batches);
        auto pipeline = chain.template pipeline<S>(options);
        std::vector<std::size_t> passed;
        for (int epoch = 0; epoch < 2; ++epoch) {
            for (auto& batch : source) {
                passed.push_back(batch.index());
                pipeline.submit(batch);
            }
            CHECK(source.next() == nullptr);
            CHECK(source.next() == nullptr);
            pipeline.finish();
            source.rewind();
        }
        CHECK(passed == std::vector<std::size_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
        CHECK(pipeline.submitted() == 2 * batches);
        CHECK(chain.results(2 * batches) == chain_results(S, words, passed));
    });
}

TEST_CASE("Contract 4: reset in the middle starts anew, with all slots free") {
    const Inputs<B> inputs(8, words);
    for_each_pipeline([&]<int S>(const PipelineOptions& options) {
        Chain<B> chain(S, words, 8);
        auto pipeline = chain.template pipeline<S>(options);
        for (std::size_t batch = 0; batch < 7; ++batch)
            pipeline.submit(inputs[batch]).stays();
        pipeline.reset();
        CHECK(pipeline.submitted() == 0);
        CHECK(chain.results(7) == chain_results(S, words, batches_from(0, 7)));
        chain.clear();
        for (std::size_t batch = 0; batch < 8; ++batch)
            pipeline.submit(inputs[batch]).stays();
        pipeline.finish();
        CHECK(pipeline.submitted() == 8);
        CHECK(chain.results(8) == chain_results(S, words, batches_from(0, 8)));
    });
}

TEST_CASE("Contract 4: a batch that would be gone before its work starts does not compile") {
    Chain<B> chain(2, words, 1);
    auto stage = Stage{"any", [](BasicStreamRef<B>, const auto&) {}, StageOptions<B>{}};
    Pipeline pipeline{Stages{stage}, Slots{}};
    using P = decltype(pipeline);
    CHECK(Submittable<P, std::vector<int>&>);
    CHECK(Submittable<P, const std::vector<int>&>);
    CHECK_FALSE(sluice::Submittable<std::vector<int>>); // which does not compile
    CHECK(Submittable<P, int>);
    CHECK(Submittable<P, PinnedSpan<const Word, B>>);
}

TEST_CASE("Contract 4: less than one slot is refused in a sentence") {
    Chain<B> chain(3, words, 1);
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        const auto make = [&] { auto pipeline = chain.pipeline<3>({.schedule = schedule, .slots = 0}); };
        CHECK(text_of(make) == "PipelineOptions::slots is 0; expected 1 to 1048576");
    }
}

} // namespace pipeline_ends

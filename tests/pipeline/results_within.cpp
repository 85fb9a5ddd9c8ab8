// What the body of a loop over Pipeline::run does with the pipeline and the source.
#include <string>
#include <vector>

#include "pipeline/results_case.hpp"
#include "support/error_text.hpp"

namespace pipeline_results {

TEST_CASE("run: a submit within the loop is refused, and the next loop goes on with the source") {
    for_each_way([]<class D>(PipelineOptions options) {
        for (const bool drains : {false, true}) {
            CAPTURE(drains);
            D dag(words);
            options.slots = slots_for(dag, options);
            if (drains && options.slots == 1)
                continue; // A loop that is left early has seen all.
            auto pipeline = dag.pipeline(options);
            const Inputs<B> inputs(1, words);
            Source source{make_slot, fill_slot, source_of(20)};
            std::size_t seen = 0;
            const auto submits_in = [&](auto&& results) {
                for (const auto& result : results) {
                    (void)result;
                    if (++seen == 3 || drains)
                        pipeline.submit(inputs[0]).stays();
                }
            };
            if (drains) {
                for (const auto& result : pipeline.run(source)) {
                    (void)result;
                    break;
                }
                CHECK(contains(text_of([&] { submits_in(pipeline.drain()); }),
                               "run: a batch was submitted within the loop over results"));
                CHECK(seen <= 1);
            } else {
                CHECK(contains(text_of([&] { submits_in(pipeline.run(source)); }),
                               "run: a batch was submitted within the loop over results"));
                CHECK(seen == 3);
            }
            for (const auto& result : pipeline.run(source))
                (void)result;
            CHECK(pipeline.submitted() == 21);
        }
    });
}

TEST_CASE(
    "run: a reset within the loop, or another loop over the same results, is refused in the outer one") {
    for_each_way([]<class D>(PipelineOptions options) {
        for (const int way : {0, 1, 2}) {
            CAPTURE(way);
            D dag(words);
            options.slots = slots_for(dag, options);
            auto pipeline = dag.pipeline(options);
            Source source{make_slot, fill_slot, source_of(20)};
            std::size_t seen = 0, inner = 0;
            const auto loop = [&] {
                for (const auto& result : pipeline.run(source)) {
                    (void)result;
                    if (++seen != 3)
                        continue;
                    if (way == 0)
                        pipeline.reset();
                    if (way == 1)
                        for ([[maybe_unused]] const auto& other : pipeline.run(source))
                            ++inner;
                    if (way == 2)
                        for ([[maybe_unused]] const auto& other : pipeline.drain())
                            ++inner;
                }
            };
            CHECK(contains(text_of(loop),
                           "run: within the loop over results the pipeline was reset or replaced"));
            CHECK(seen == 3);
            CHECK_FALSE(pipeline.failed());
            std::size_t rest = 0;
            for ([[maybe_unused]] const auto& result : pipeline.run(source))
                ++rest;
            const std::size_t lost = way == 0 ? static_cast<std::size_t>(options.slots) - 1 : 0;
            CHECK(seen + inner + rest + lost == 20);
        }
    });
}

TEST_CASE("run: a stop request, or a fill on the loop's thread, that submits or resets is refused likewise") {
    for_each_way([]<class D>(PipelineOptions options) {
        for (const bool fills : {false, true}) {
            for (const bool resets : {false, true}) {
                CAPTURE(fills);
                CAPTURE(resets);
                const Inputs<B> inputs(1, words); // which a batch may still read when the loop has thrown
                D dag(words);
                options.slots = slots_for(dag, options);
                auto pipeline = dag.pipeline(options);
                std::size_t calls = 0, given = 0;
                const auto disturb = [&](bool here) {
                    if (!here || ++calls != 5)
                        return;
                    if (resets)
                        pipeline.reset();
                    else
                        pipeline.submit(inputs[0]).stays();
                };
                Source source{make_slot,
                              [&](std::size_t index, auto& batch) {
                                  disturb(fills);
                                  fill_slot(index, batch);
                              },
                              SourceOptions<B>{.workers = 0, .slots = 8, .batches = 20}};
                const auto loop = [&] {
                    for ([[maybe_unused]] const auto& result : pipeline.run(source, [&] {
                             disturb(!fills);
                             return false;
                         }))
                        ++given;
                };
                CHECK(contains(text_of(loop),
                               resets ? "run: within the loop over results the pipeline was reset or replaced"
                                      : "run: a batch was submitted within the loop over results"));
                CHECK(given <= 4); // None behind the batch that was not the loop's.
                CHECK_FALSE(pipeline.failed());
                std::size_t rest = 0;
                for ([[maybe_unused]] const auto& result : pipeline.run(source))
                    ++rest;
                CHECK(rest == (fills ? 15 : 16)); // Lost is the batch alone that was being filled.
            }
        }
    });
}

TEST_CASE("run: a source that is rewound within the loop begins again behind the batches under way") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        Source source{make_slot, fill_slot, source_of(9)};
        std::vector<Word> results, expected;
        for (const auto& result : pipeline.run(source)) {
            append(results, result);
            if (results.size() == 3 * words)
                source.rewind();
        }
        std::vector<std::size_t> batches = batches_from(0, 2 + static_cast<std::size_t>(options.slots));
        const auto again = batches_from(0, 9);
        batches.insert(batches.end(), again.begin(), again.end());
        (void)dag.expected(batches, &expected);
        CHECK(results == expected);
    });
}

} // namespace pipeline_results

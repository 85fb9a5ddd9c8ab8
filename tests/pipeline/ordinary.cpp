// Ordinary programs under Schedule::graphed, which give what they give under any other schedule.
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "support/delayed_backend.hpp"

namespace pipeline_ordinary {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
using Ref = BasicStreamRef<B>;
constexpr std::size_t words = 64;

// Some of a batch's words.
struct Samples {
    PinnedBuffer<Word, B> values;
    std::size_t count = 0;
};
struct Cells {
    DeviceBuffer<Word, B> values;
    std::size_t count = 0;
};

// All samples in order, through a memory that shows any that is lost or comes twice.
class Sum {
public:
    Sum() : memory_(1), scratch_(words) { memory_[0] = 0; }
    // One after the other: a batch of another size has other work.
    void add(Ref stream, const Word* values, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            ops::step(stream.get(), scratch_.data() + i, values + i, memory_.data(), 1);
    }
    Word value() const { return memory_[0]; }

private:
    PinnedBuffer<Word, B> memory_, scratch_;
};
Word expected_sum(std::size_t samples, int epochs, const std::function<Word(int, std::size_t)>& value) {
    Word memory = 0;
    for (int epoch = 0; epoch < epochs; ++epoch) {
        for (std::size_t i = 0; i < samples; ++i)
            memory = next_memory(memory, value(epoch, i));
    }
    return memory;
}

template <class Check>
void for_each_way(Check&& check) {
    std::uint64_t seed = 500;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int slots : {1, 2, 3}) {
            for (const int steps : {0, 1, 4}) {
                if (steps > 0 && schedule != Schedule::graphed)
                    continue;
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(slots);
                CAPTURE(steps);
                Delay::set({.seed = ++seed, .one_in = 10, .microseconds = 200});
                check(dag_options(schedule, slots, steps));
            }
        }
    }
}

} // namespace

TEST_CASE("ordinary: a thousand samples in batches of 64, the last one shorter, in several epochs") {
    for_each_way([](const PipelineOptions& options) {
        constexpr std::size_t samples = 1000;
        constexpr std::size_t batches = (samples + words - 1) / words;
        Sum sum;
        const auto copy_in = [](Ref stream, const Samples& in, Cells& out) {
            out.count = in.count;
            copy(stream, out.values.span().first(in.count), in.values.span().first(in.count));
        };
        const auto add = [&](Ref stream, const Cells& in) { sum.add(stream, in.values.data(), in.count); };
        Pipeline pipeline{Stages{Stage{"copy", copy_in}, Stage{"add", add}},
                          Slots{[](int) { return Cells{DeviceBuffer<Word, B>(words)}; }}, options};
        Source source{[](int) { return Samples{PinnedBuffer<Word, B>(words)}; },
                      [](std::size_t index, Samples& out) {
                          out.count = std::min(words, samples - index * words);
                          for (std::size_t i = 0; i < out.count; ++i)
                              out.values[i] = input_word(index, i);
                      },
                      SourceOptions<B>{.workers = 2, .slots = 4, .batches = batches}};
        for (int epoch = 0; epoch < 4; ++epoch) {
            for (const auto& batch : source)
                epoch % 2 == 0 ? pipeline.submit(batch) : pipeline.submit(*batch);
            source.rewind();
        }
        pipeline.finish();
        CHECK(sum.value() ==
              expected_sum(samples, 4, [](int, std::size_t i) { return input_word(i / words, i % words); }));
    });
}

TEST_CASE("ordinary: a new source each epoch, whose buffers may lie where the last one's lay") {
    for_each_way([](const PipelineOptions& options) {
        Dag<B, DagStage{0, true}, DagStage{1}, DagStage{2, true, false}> dag(words);
        auto pipeline = dag.pipeline(options);
        std::vector<std::size_t> batches;
        for (std::size_t epoch = 0; epoch < 5; ++epoch) {
            const std::size_t size = 7 + epoch;
            Source source{
                [](int) { return PinnedBuffer<Word, B>(words); },
                [=](std::size_t index, PinnedBuffer<Word, B>& out) {
                    for (std::size_t i = 0; i < words; ++i)
                        out[i] = input_word(epoch * 100 + index, i);
                },
                SourceOptions<B>{.workers = 1, .slots = 2 + static_cast<int>(epoch % 3), .batches = size}};
            for (const auto& batch : source) {
                pipeline.submit(batch);
                batches.push_back(epoch * 100 + batch.index());
            }
            // The source goes before the pipeline has finished.
        }
        pipeline.finish();
        CHECK(dag.memories() == dag.expected(batches));
    });
}

TEST_CASE("ordinary: a batch whose buffer grows now and then") {
    for_each_way([](const PipelineOptions& options) {
        Sum sum;
        const auto only = [&](Ref stream, const Samples& in) { sum.add(stream, in.values.data(), in.count); };
        Pipeline pipeline{Stages{Stage{"only", only}}, Slots{}, options};
        Source source{[](int) {
                          return Samples{PinnedBuffer<Word, B>(4), 4};
                      },
                      [](std::size_t index, Samples& out) {
                          const std::size_t count = 4 + index / 10 * 4;
                          if (out.values.size() < count)
                              out.values = PinnedBuffer<Word, B>(count);
                          out.count = count;
                          for (std::size_t i = 0; i < count; ++i)
                              out.values[i] = input_word(index, i);
                      },
                      SourceOptions<B>{.workers = 1, .slots = 2, .batches = 40}};
        for (const auto& batch : source)
            pipeline.submit(batch);
        pipeline.finish();
        Word memory = 0;
        for (std::size_t index = 0; index < 40; ++index) {
            for (std::size_t i = 0; i < 4 + index / 10 * 4; ++i)
                memory = next_memory(memory, input_word(index, i));
        }
        CHECK(sum.value() == memory);
    });
}

TEST_CASE("ordinary: a number of a source's batch is read when the work runs, or when it is enqueued") {
    for (const bool when_it_runs : {false, true}) {
        if (when_it_runs && !std::is_same_v<TestBackend, Host>)
            continue; // a device reads no ordinary memory
        for_each_way([&](const PipelineOptions& options) {
            CAPTURE(when_it_runs);
            struct Number {
                Word value;
            };
            Sum sum;
            PinnedBuffer<Word, B> numbers(8);
            for (std::size_t i = 0; i < 8; ++i)
                numbers[i] = input_word(i, 0);
            const auto only = [&](Ref stream, const Number& in) {
                // The source's slot stays as it is until the work has read it.
                sum.add(stream, when_it_runs ? &in.value : numbers.data() + in.value % 8, 1);
            };
            Pipeline pipeline{Stages{Stage{"only", only}}, Slots{}, options};
            const auto number_of = [=](std::size_t index) {
                return static_cast<Word>(index % 3 + index % 5);
            };
            Source source{[](int) { return Number{}; },
                          [=](std::size_t index, Number& out) { out.value = number_of(index); },
                          SourceOptions<B>{.workers = 1, .slots = 2, .batches = 90}};
            for (const auto& batch : source)
                pipeline.submit(batch);
            pipeline.finish();
            CHECK(sum.value() == expected_sum(90, 1, [&](int, std::size_t i) {
                      return when_it_runs ? number_of(i) : input_word(number_of(i) % 8, 0);
                  }));
        });
    }
}

TEST_CASE("ordinary: a number that a stage puts into its slot on the host") {
    for_each_way([](const PipelineOptions& options) {
        Sum sum;
        PinnedBuffer<Word, B> numbers(8);
        for (std::size_t i = 0; i < 8; ++i)
            numbers[i] = input_word(i, 0);
        const auto first = [](Ref, Word in, Word& out) { out = in % 8; };
        const auto last = [&](Ref stream, const Word& in) { sum.add(stream, numbers.data() + in, 1); };
        Pipeline pipeline{Stages{Stage{"first", first}, Stage{"last", last}},
                          Slots{[](int) { return Word{}; }}, options};
        for (std::size_t batch = 0; batch < 90; ++batch)
            pipeline.submit(static_cast<Word>(batch % 3 + batch % 5));
        pipeline.finish();
        CHECK(sum.value() ==
              expected_sum(90, 1, [](int, std::size_t i) { return input_word((i % 3 + i % 5) % 8, 0); }));
    });
}

TEST_CASE("ordinary: next() twice before a submit, *batch beside batch, and an empty handle") {
    for_each_way([](const PipelineOptions& options) {
        Dag<B, DagStage{0, true}, DagStage{1, true, false}> dag(words);
        auto pipeline = dag.pipeline(options);
        Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                      [](std::size_t index, PinnedBuffer<Word, B>& out) {
                          for (std::size_t i = 0; i < words; ++i)
                              out[i] = input_word(index, i);
                      },
                      SourceOptions<B>{.workers = 1, .slots = 3, .batches = 20}};
        for (std::size_t pair = 0; pair < 10; ++pair) {
            const auto one = source.next();
            auto two = source.next();
            pair % 2 == 0 ? pipeline.submit(one) : pipeline.submit(*one);
            pipeline.submit(std::move(two));
        }
        const auto empty = source.next();
        CHECK(empty == nullptr);
        CHECK(contains(text_of([&] { pipeline.submit(empty); }), "the batch is empty"));
        CHECK_FALSE(pipeline.failed());
        pipeline.finish();
        CHECK(dag.memories() == dag.expected(batches_from(0, 20)));
    });
}

} // namespace pipeline_ordinary

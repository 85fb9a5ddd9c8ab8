// Random shapes with random lanes, schedules, slots and ends, compared with a plain loop.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "support/can_share.hpp"
#include "support/delayed_backend.hpp"
#include "support/sanitized.hpp"

namespace sluice::test {

/// Random numbers that are the same when compiled and when run.
class RandomChoice {
public:
    constexpr explicit RandomChoice(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
    /// Less than `count`.
    constexpr std::uint32_t below(std::uint32_t count) {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::uint32_t>(state_ >> 33) % count;
    }

private:
    std::uint64_t state_;
};

/// Whether a stage runs once for several batches.
constexpr bool runs_less_often(const std::array<DagStage, 6>& shape, std::size_t stage) {
    for (std::size_t from = 0; from < stage; ++from) {
        if ((shape[stage].reads >> from & 1) != 0 && (shape[from].every > 1 || runs_less_often(shape, from)))
            return true;
    }
    return false;
}

/// A random shape of six stages, of which every output is read, but for the last stage's. With `cpu`, about one in
/// three is a CPU stage. With `slots`, some change a slot in place, some take several batches, and some make one output for several.
constexpr std::array<DagStage, 6> random_shape(std::uint64_t seed, bool cpu, bool slots = false) {
    RandomChoice random(seed);
    std::array<DagStage, 6> shape{};
    std::array<bool, 6> read{}, changed{};
    for (std::size_t i = 0; i < shape.size(); ++i) {
        std::size_t last = 0;
        bool alone = false; // No other stage reads it.
        for (std::size_t j = 0; j < i; ++j) {
            if (changed[j])
                continue;
            const bool must = i + 1 == shape.size() && !read[j];
            if (shape[j].output && (must || random.below(3) == 0)) {
                shape[i].reads |= 1u << j;
                last = j;
                alone = !read[j];
                read[j] = true;
            }
        }
        if (slots && shape[i].reads != 0) {
            shape[i].in_place = changed[last] = alone && random.below(2) == 0;
            shape[i].window = random.below(3) == 0 ? 2 + static_cast<int>(random.below(2)) : 0;
        }
        shape[i].batch = shape[i].reads == 0 || random.below(4) == 0;
        if (slots && runs_less_often(shape, i)) { // It can take neither the batch nor others' batches before.
            shape[i].batch = false;
            shape[i].window = 0;
        }
        // A middle stage that makes nothing is a way that ends early.
        shape[i].output =
            shape[i].in_place || (i + 1 == shape.size() ? random.below(2) == 0 : random.below(8) != 0);
        shape[i].cpu = cpu && random.below(3) == 0;
        if (slots && shape[i].output && !shape[i].in_place && random.below(4) == 0)
            shape[i].every = 2 + static_cast<int>(random.below(2));
    }
    return shape;
}

/// A pipeline of a random shape. Its own type's functions are called, but what calls them is compiled once for all shapes.
template <Backend B>
class RandomPipeline {
public:
    virtual ~RandomPipeline() = default;
    virtual void submit_to_stay(PinnedSpan<const Word, B> batch) = 0;
    virtual void submit(const SourceBatch<PinnedBuffer<Word, B>, B>& batch) = 0;
    virtual void submit(const SourceBatch<PinnedSpan<const Word, B>, B>& batch) = 0;
    virtual void flush() = 0;
    virtual void finish() = 0;
    virtual std::size_t submitted() const = 0;
};
template <class D, Backend B = typename D::backend>
class RandomPipelineOf final : public RandomPipeline<B> {
public:
    RandomPipelineOf(D& dag, const PipelineOptions& options) : pipeline_(dag.pipeline(options)) {}
    void submit_to_stay(PinnedSpan<const Word, B> batch) override { pipeline_.submit(batch).stays(); }
    void submit(const SourceBatch<PinnedBuffer<Word, B>, B>& batch) override { pipeline_.submit(batch); }
    void submit(const SourceBatch<PinnedSpan<const Word, B>, B>& batch) override { pipeline_.submit(batch); }
    void flush() override { pipeline_.flush(); }
    void finish() override { pipeline_.finish(); }
    std::size_t submitted() const override { return pipeline_.submitted(); }

private:
    decltype(std::declval<D&>().pipeline({})) pipeline_;
};

/// The same for a `Dag`.
template <Backend B>
class RandomDag {
public:
    virtual ~RandomDag() = default;
    virtual DagOf<B>& dag() = 0;
    virtual int slots_for(const PipelineOptions& options) = 0;
    virtual std::unique_ptr<RandomPipeline<B>> pipeline(const PipelineOptions& options) = 0;
};
template <class D, Backend B = typename D::backend>
class RandomDagOf final : public RandomDag<B> {
public:
    explicit RandomDagOf(std::size_t words) : dag_(words) {}
    static std::unique_ptr<RandomDag<B>> make(std::size_t words) {
        return std::unique_ptr<RandomDag<B>>(new RandomDagOf(words));
    }
    DagOf<B>& dag() override { return dag_; }
    int slots_for(const PipelineOptions& options) override { return test::slots_for(dag_, options); }
    std::unique_ptr<RandomPipeline<B>> pipeline(const PipelineOptions& options) override {
        return std::unique_ptr<RandomPipeline<B>>(new RandomPipelineOf<D>(dag_, options));
    }

private:
    D dag_;
};

/// One of several, drawn.
template <class First, class... Others>
First pick(RandomChoice& random, First first, Others... others) {
    const std::array<First, 1 + sizeof...(Others)> all{first, others...};
    return all[random.below(static_cast<std::uint32_t>(all.size()))];
}

/// Draws lanes, graphs and shares of stages.
template <Backend B>
void draw_stages(RandomChoice& random, DagShape shape, DagOf<B>& dag) {
    static const bool shares = can_share<B>();
    for (std::size_t stage = 0; stage < shape.size(); ++stage) {
        // What makes nothing has nowhere but its memory to leave a trace.
        const bool may = shape[stage].output && shape[stage].window < 2 && shape[stage].every == 1 &&
                         batches_a_run(shape, stage) == 1;
        dag.lanes[stage] = may && random.below(3) == 0 ? pick(random, 2, 3) : 1;
        dag.graphed[stage] = random.below(12) != 0;
        if (shares && !shape[stage].cpu && random.below(16) == 0)
            dag.multiprocessors[stage] = 8;
    }
}

/// Submits `count` batches, of which `distinct` differ, and calls `at_random` after each: one by one, of a source, or of two.
template <Backend B, class AtRandom>
void submit_randomly(RandomChoice& random, RandomPipeline<B>& pipeline, const Inputs<B>& inputs,
                     std::size_t words, std::size_t count, std::size_t distinct, AtRandom at_random) {
    if (random.below(2) == 0) {
        for (std::size_t batch = 0; batch < count; ++batch) {
            pipeline.submit_to_stay(inputs[batch % distinct]);
            at_random();
        }
        return;
    }
    const auto make = [=](int) { return PinnedBuffer<Word, B>(words); };
    const auto fill_words = [=](std::size_t index, PinnedBuffer<Word, B>& out) {
        for (std::size_t i = 0; i < words; ++i)
            out[i] = input_word(index % distinct, i);
    };
    const SourceOptions<B> of_source{
        .workers = pick(random, 0, 1, 2), .slots = pick(random, 1, 2, 3, 8), .batches = count};
    Source source{make, fill_words, of_source};
    const auto submit_all = [&](auto& batches) {
        for (const auto& batch : batches) {
            pipeline.submit(batch);
            at_random();
        }
    };
    if (random.below(2) == 0) {
        submit_all(source);
    } else { // Of two sources, of which one batch and the other is read.
        using Both = PinnedSpan<const Word, B>;
        Source other{make, fill_words, of_source};
        auto zipped = zip(source, other, [step = 0](const Both& first, const Both& second) mutable {
            return ++step % 2 == 0 ? first : second;
        });
        submit_all(zipped);
    }
}

/// Runs one shape `times` times, each time in another way.
template <Backend B>
void check_randomly(DagShape shape, std::unique_ptr<RandomDag<B>> (*make_dag)(std::size_t words),
                    std::uint64_t seed, int times) {
    constexpr std::size_t words = 16;
    static const Inputs<B> inputs(6, words);
    RandomChoice random(seed + 1000);
    for (int time = 0; time < times; ++time) {
        CAPTURE(seed);
        CAPTURE(time);
        const Schedule schedule = pick(random, Schedule::serial, Schedule::overlapped, Schedule::overlapped,
                                       Schedule::graphed, Schedule::graphed);
        const std::size_t distinct = pick(random, 1u, 2u, 3u, 6u);
        const std::size_t count = pick(random, 3u, 20u, 40u, 100u);
        const std::unique_ptr<RandomDag<B>> held = make_dag(words);
        DagOf<B>& dag = held->dag();
        draw_stages(random, shape, dag);
        PipelineOptions options =
            dag_options(schedule, pick(random, 1, 2, 3, 4), pick(random, 0, 1, 4, 5, 16));
        options.launch_blocking = random.below(12) == 0;
        options.slots = held->slots_for(options);
        static int refusals;
        refusals = 0;
        // Ends may come so often that no step becomes whole.
        options.graphs.on_refusal = [](const char* reason) {
            refusals += contains(reason, "cut off every step") ? 0 : 1;
        };
        Delay::set({.seed = seed * 1000 + static_cast<std::uint64_t>(time),
                    .one_in = pick(random, 0u, 3u, 10u),
                    .microseconds = pick(random, 50u, 300u)});
        const std::uint32_t end_in = pick(random, 0u, 0u, 5u, 20u);
        CAPTURE(std::string(to_string(schedule)));
        CAPTURE(options.slots);
        CAPTURE(options.steps_per_graph);
        CAPTURE(count);
        const std::unique_ptr<RandomPipeline<B>> pipeline = held->pipeline(options);
        std::vector<std::size_t> ends;
        submit_randomly(random, *pipeline, inputs, words, count, distinct, [&] {
            if (end_in == 0 || random.below(end_in) != 0)
                return;
            if (random.below(2) == 0) {
                pipeline->flush();
            } else {
                pipeline->finish();
                ends.push_back(pipeline->submitted());
            }
        });
        pipeline->finish();
        CHECK(pipeline->submitted() == count);
        CHECK(dag.memories() == dag.expected(repeating(count, distinct), nullptr, ends));
        CHECK(refusals == 0);
    }
}

/// Checks the shapes of `seeds`, `times` times in all. Each is a pipeline of its own to the compiler, so these are few, and
/// chosen: among them are chains, diamonds, ways past a stage, outputs that several stages read, stages that read several,
/// and ways that end early. Under a sanitizer, which multiplies what each costs, it is the first three, less often.
template <Backend B, bool cpu, bool slots, std::uint64_t... seeds>
void check_random_shapes(int times) {
    constexpr std::size_t count = sanitized ? 3 : sizeof...(seeds);
    if (sanitized)
        times /= 4;
    static constexpr std::array<std::uint64_t, sizeof...(seeds)> all{seeds...};
    [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        (
            [&] {
                constexpr auto shape = random_shape(all[Is], cpu, slots);
                using D = Dag<B, shape[0], shape[1], shape[2], shape[3], shape[4], shape[5]>;
                check_randomly<B>(D::shape, &RandomDagOf<D>::make, all[Is], times / static_cast<int>(count));
            }(),
            ...);
    }
    (std::make_index_sequence<count>{});
}

} // namespace sluice::test

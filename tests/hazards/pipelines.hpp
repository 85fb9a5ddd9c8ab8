// Pipelines of three shapes, whose callables are the program's: each shape is compiled once.
#pragma once

#include <cstddef>
#include <utility>

#include <sluice/ragged.hpp>

#include "hazards/hazards.hpp"

namespace sluice::test {

/// What is submitted.
struct Batch {
    Pinned images = numbered("batch images"), labels = numbered("batch labels");
};
/// What stands between two stages.
struct Slot {
    Device features = named("slot features"), labels = named("slot labels"), scores = named("slot scores");
};

using Encode = AnyCall<void(Ref, const Batch&, Slot&)>;
using Train = AnyCall<void(Ref, const Batch&, Slot&)>;

/// The stages of `TwoStages`. Without a callable, `encode` copies the batch to its slot and `train` makes scores of it.
Stage<Encode, B> encode(StageOptions<B> options = {}, Encode callable = {}, const char* name = "encode");
Stage<Train, B> train(StageOptions<B> options = {}, Train callable = {}, const char* name = "train");
inline Stage<Encode, B> encode(Encode callable) { return encode({}, std::move(callable)); }
inline Stage<Train, B> train(Train callable) { return train({}, std::move(callable)); }
/// What `encode` does by itself.
void encode_batch(Ref stream, const Batch& in, Slot& out);

/// A slot's or a batch's maker.
template <class T>
struct Make {
    T operator()(int) const { return {}; }
};

/// Both stages take the batch, so that it has been read when both are through.
struct TwoStages {
    static constexpr std::size_t most = 8;
    Batch batches[most];
    TwoStreamPipeline<Stage<Encode, B>, Stage<Train, B>, Make<Slot>> pipeline;

    explicit TwoStages(Stage<Encode, B> first, Stage<Train, B> second, PipelineOptions options = {})
        : pipeline(std::move(first), std::move(second), Make<Slot>{}, options) {}

    /// Batch `number`, which stays as it is: nothing waits.
    void submit(std::size_t number) { pipeline.submit(batches[number % most]).stays(); }
    void submit_all(std::size_t number) {
        for (std::size_t i = 0; i < number; ++i)
            submit(i);
    }
};

// load → left and right → join
struct Left {
    Device values = named("left values");
};
struct Right {
    Device values = named("right values");
};
using Load = AnyCall<void(Ref, const Batch&, Slot&)>;
using MakeLeft = AnyCall<void(Ref, const Slot&, Left&)>;
using MakeRight = AnyCall<void(Ref, const Slot&, Right&)>;
using Join = AnyCall<void(Ref, const Left&, const Right&)>;

/// The callables that a program leaves out copy from what they take.
struct DiamondStages {
    Load load = encode_batch;
    MakeLeft left = [](Ref s, const Slot& in, Left& out) { copy(s, out.values, in.features); };
    MakeRight right = [](Ref s, const Slot& in, Right& out) { copy(s, out.values, in.features); };
    Join join = [](Ref s, const Left& a, const Right& b) {
        reads(s, a.values);
        reads(s, b.values);
    };
};

struct Diamond {
    Batch batches[4];
    Pipeline<Stages<Stage<Load, B>, Stage<MakeLeft, B>, Stage<MakeRight, B>, Stage<Join, B>>,
             Slots<Make<Slot>, Make<Left>, Make<Right>>>
        pipeline;

    explicit Diamond(DiamondStages stages, PipelineOptions options = {})
        : pipeline(Stages{Stage<Load, B>{"load", std::move(stages.load)},
                          Stage<MakeLeft, B>{"left", std::move(stages.left)},
                          Stage<MakeRight, B>{"right", std::move(stages.right)},
                          Stage<Join, B>{"join", std::move(stages.join)}},
                   Slots{Make<Slot>{}, Make<Left>{}, Make<Right>{}}, options) {}

    void submit_all(std::size_t number) {
        for (std::size_t i = 0; i < number; ++i)
            pipeline.submit(batches[i % 4]).stays();
    }
};

// fetch (the device) → choose (a CPU stage) → apply (the device), whose output is the result
struct Scores {
    Pinned values = named<Pinned>("scores");
};
struct Choice {
    Pinned values = named<Pinned>("choice");
};
struct Applied {
    Pinned values = named<Pinned>("applied");
};
using Fetch = AnyCall<void(Ref, const Batch&, Scores&)>;
using Choose = AnyCall<void(const Scores&, Choice&)>;
using Apply = AnyCall<void(Ref, const Choice&, Applied&)>;

struct CpuStages {
    Fetch fetch;
    Choose choose;
    Apply apply;

    /// By way of the world's `images` and `labels`, which no other stage uses.
    explicit CpuStages(World& world)
        : fetch([&world](Ref s, const Batch& in, Scores& out) {
              copy(s, world.images, in.images);
              copy(s, out.values, world.images);
          }),
          choose([](const Scores& in, Choice& out) {
              for (std::size_t i = 0; i < count; ++i)
                  out.values[i] = in.values[i] + 1;
          }),
          apply([&world](Ref s, const Choice& in, Applied& out) {
              copy(s, world.labels, in.values);
              copy(s, out.values, world.labels);
          }) {}
};

struct WithCpuStage {
    Batch batches[4];
    Pipeline<Stages<Stage<Fetch, B>, Stage<Choose>, Stage<Apply, B>>,
             Slots<Make<Scores>, Make<Choice>, Make<Applied>>>
        pipeline;

    explicit WithCpuStage(const CpuStages& stages, PipelineOptions options = {})
        : pipeline(Stages{Stage<Fetch, B>{"fetch", stages.fetch}, Stage<Choose>{"choose", stages.choose},
                          Stage<Apply, B>{"apply", stages.apply}},
                   Slots{Make<Scores>{}, Make<Choice>{}, Make<Applied>{}}, options) {}

    void submit_all(std::size_t number) {
        for (std::size_t i = 0; i < number; ++i)
            pipeline.submit(batches[i % 4]).stays();
    }
};

/// A source of `Batch`, whose filling is the program's.
using Fill = AnyCall<void(std::size_t, Batch&)>;
using Batches = Source<Batch, NoState, Fill, B>;

} // namespace sluice::test

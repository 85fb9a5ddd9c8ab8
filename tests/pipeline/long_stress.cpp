// Many batches under stress: late streams, poisoned slots, unusual orders, under every schedule, through several shapes of
// pipelines, on streams of the backend's own and on others, with CPU stages: the bits of serial. SLUICE_LONG_BATCHES says how
// many batches each schedule has in all; CONTRIBUTING.md has the command for a million.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <sluice/sluice.hpp>

#include "support/apart_backend.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/stream_ops.hpp"

namespace sluice::test::pipeline_long_stress {
namespace {

constexpr std::size_t words = 4;
constexpr std::size_t inputs = 3;

std::size_t batches_of_each_schedule() {
    const char* const asked = std::getenv("SLUICE_LONG_BATCHES");
    return asked == nullptr ? 1000 : std::strtoull(asked, nullptr, 10);
}

template <class B>
struct Batch {
    PinnedSpan<const Word, B> values;
    std::size_t rows; // as many are read
};
// One of a source's.
template <class B>
struct Packet {
    PinnedBuffer<Word, B> values{words};
    std::size_t rows = 0;
};
template <class B, int>
struct OnDevice {
    DeviceBuffer<Word, B> words{pipeline_long_stress::words};
};
template <class B, int>
struct OnHost {
    PinnedBuffer<Word, B> words{pipeline_long_stress::words};
};
template <class S>
auto make() {
    return [](int) { return S{}; };
}

// What all stages remember shows any batch that came twice, late, torn, or not at all.
enum class Shape { chain, sourced, fork, threads };
constexpr const char* name_of[] = {"chain", "chain behind a source", "fork", "CPU stage"};
constexpr std::size_t shapes = 5; // with the CPU stage on either backend

template <class B>
class Program {
public:
    using Ref = BasicStreamRef<B>;

    template <Shape shape>
    std::vector<Word> run(std::size_t batches, const PipelineOptions& options) {
        for (std::size_t i = 0; i < memory_.size(); ++i)
            memory_[i] = 0;
        for (std::size_t i = 0; i < input_.size(); ++i)
            input_[i] = static_cast<Word>(i * 2654435761u + 1);
        if constexpr (shape == Shape::sourced) {
            auto pipeline = chain<Packet<B>>(options);
            submit_source(pipeline, batches);
        } else if constexpr (shape == Shape::chain) {
            auto pipeline = chain<Batch<B>>(options);
            submit(pipeline, batches);
        } else if constexpr (shape == Shape::fork) {
            auto pipeline = fork(options);
            submit(pipeline, batches);
        } else {
            auto pipeline = threads(options);
            submit(pipeline, batches);
        }
        return {memory_.data(), memory_.data() + memory_.size()};
    }

private:
    static constexpr std::size_t rows_of(std::size_t batch) { return 1 + batch % words; }

    template <class P>
    void submit(P& pipeline, std::size_t batches) {
        for (std::size_t batch = 0; batch < batches; ++batch) {
            const PinnedSpan<const Word, B> values(input_.data() + words * (batch % inputs), words);
            pipeline.submit(Batch<B>{values, rows_of(batch)}).stays();
            if (batch % 1024 == 1000)
                pipeline.finish(); // which fills and drains graphs
        }
        pipeline.finish();
    }
    template <class P>
    void submit_source(P& pipeline, std::size_t batches) {
        Source filled{[](int) { return Packet<B>{}; },
                      [this](std::size_t index, Packet<B>& out) {
                          out.rows = rows_of(index);
                          for (std::size_t row = 0; row < out.rows; ++row)
                              out.values[row] = input_[words * (index % inputs) + row];
                      },
                      SourceOptions<B>{.workers = 2, .slots = 4, .batches = batches}};
        for (const auto& batch : filled)
            pipeline.submit(batch);
        pipeline.finish();
    }

    void step(Ref on, Word* out, const Word* in, std::size_t stage, std::size_t count = words) {
        ops::step(on.get(), out, in, memory_.data() + stage * words, count);
    }
    void step_on_cpu(Word* out, const Word* in, std::size_t stage) {
        for (std::size_t i = 0; i < words; ++i) {
            Word& memory = memory_[stage * words + i];
            const Word word = in[i];
            out[i] = next_word(memory, word);
            memory = next_memory(memory, word);
        }
    }
    // Rows that the batch does not have are 0.
    template <class Given>
    static void take(Ref on, const Given& batch, DeviceBuffer<Word, B>& out) {
        fill(on, out, Word{0});
        copy(on, out.span().first(batch.rows), PinnedSpan<const Word, B>(batch.values.data(), batch.rows));
    }

    template <class Given>
    auto chain(const PipelineOptions& options) {
        using A = OnDevice<B, 0>;
        using C = OnDevice<B, 1>;
        return Pipeline{
            Stages{Stage{"copy", [](Ref on, const Given& batch, A& out) { take(on, batch, out.words); }},
                   Stage{"encode", [this](Ref on, const A& in,
                                          C& out) { step(on, out.words.data(), in.words.data(), 0); }},
                   Stage{"train", [this](Ref on, C& in) { step(on, in.words.data(), in.words.data(), 1); }}},
            Slots{make<A>(), make<C>()}, options};
    }
    auto fork(const PipelineOptions& options) {
        using A = OnDevice<B, 0>;
        using C = OnDevice<B, 1>;
        using D = OnDevice<B, 2>;
        return Pipeline{
            Stages{Stage{"copy", [](Ref on, const Batch<B>& batch, A& out) { take(on, batch, out.words); }},
                   Stage{"left", [this](Ref on, const A& in,
                                        C& out) { step(on, out.words.data(), in.words.data(), 0); }},
                   Stage{"right", [this](Ref on, const A& in,
                                         D& out) { step(on, out.words.data(), in.words.data(), 1); }},
                   Stage{"join",
                         [this](Ref on, const C& left, const D& right) {
                             step(on, memory_.data() + 3 * words, left.words.data(), 2);
                             step(on, memory_.data() + 3 * words, right.words.data(), 2);
                         }}},
            Slots{make<A>(), make<C>(), make<D>()}, options};
    }
    auto threads(const PipelineOptions& options) {
        using A = OnDevice<B, 0>;
        using H = OnHost<B, 1>;
        using I = OnHost<B, 2>;
        return Pipeline{
            Stages{Stage{"copy", [](Ref on, const Batch<B>& batch, A& out) { take(on, batch, out.words); }},
                   Stage{"download", [](Ref on, const A& in, H& out) { copy(on, out.words, in.words); }},
                   Stage{"on CPU",
                         [this](const H& in, I& out) { step_on_cpu(out.words.data(), in.words.data(), 0); }},
                   Stage{"train",
                         [this](Ref on, const I& in) {
                             step(on, memory_.data() + 3 * words, in.words.data(), 1);
                         }}},
            Slots{make<A>(), make<H>(), make<I>()}, options};
    }

    PinnedBuffer<Word, B> memory_{4 * words}, input_{inputs * words};
};

struct Way {
    const char* name;
    Schedule schedule;
    bool each_stage;
    int steps;
};
constexpr Way ways[] = {{"serial", Schedule::serial, false, 0},
                        {"overlapped", Schedule::overlapped, false, 0},
                        {"graphed", Schedule::graphed, false, 0},
                        {"graphed, 4 steps", Schedule::graphed, false, 4},
                        {"graphed, each stage", Schedule::graphed, true, 0},
                        {"automatic", Schedule::automatic, false, 0}};

template <class B, Shape shape>
void run() {
    const std::size_t batches = batches_of_each_schedule() / shapes;
    Program<B> program;
    const std::vector<Word> expected = program.template run<shape>(batches, {.schedule = Schedule::serial});
    Delay::set({.one_in = 0});
    std::uint64_t seed = 1;
    for (const Way& way : ways) {
        CAPTURE(std::string(way.name));
        PipelineOptions options{.schedule = way.schedule, .slots = 3, .steps_per_graph = way.steps};
        options.graph_each_stage = way.each_stage;
        options.graphs.on_refusal = nullptr;
        const StressCounts before = StressScope::counts();
        const auto begun = std::chrono::steady_clock::now();
        {
            const int one_in = batches > 100000 ? 500 : 40;
            const StressScope rare({.seed = seed, .delay_us = 200, .one_in = one_in});
            CHECK(program.template run<shape>(batches, options) == expected);
        }
        ++seed;
        const StressCounts after = StressScope::counts();
        CHECK(after.poisonings > before.poisonings);
        CHECK(after.delays > before.delays);
        if (std::getenv("SLUICE_LONG_BATCHES") != nullptr) {
            std::printf("%s, %s, %s: %zu batches, %.1f s, %llu operations, %llu late, %llu poisoned, "
                        "%llu held, %llu reordered\n",
                        B::name, name_of[static_cast<int>(shape)], way.name, batches,
                        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(),
                        static_cast<unsigned long long>(after.operations - before.operations),
                        static_cast<unsigned long long>(after.delays - before.delays),
                        static_cast<unsigned long long>(after.poisonings - before.poisonings),
                        static_cast<unsigned long long>(after.holds - before.holds),
                        static_cast<unsigned long long>(after.orders - before.orders));
            std::fflush(stdout);
        }
    }
}

} // namespace

TEST_CASE(
    "Contract 11: stress: many batches through a chain, a fork and CPU stages give the bits of serial") {
    run<TestBackend, Shape::chain>();
    run<TestBackend, Shape::sourced>();
    run<TestBackend, Shape::fork>();
    run<TestBackend, Shape::threads>();
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("Contract 11: stress: many batches through CPU stages beside streams that are none of the Host "
          "backend's") {
    run<Apart, Shape::threads>();
}
#endif

} // namespace sluice::test::pipeline_long_stress

// Which stage takes whose output follows from the types: tags, conversions, generic callables, and what cannot be moved.
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/capturable.hpp"
#include "support/delayed_backend.hpp"
#include "support/gate.hpp"
#include "support/latch.hpp"

namespace pipeline_types {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
using Ref = BasicStreamRef<B>;
using Batch = PinnedSpan<const Word, B>;
constexpr std::size_t words = 16;
constexpr std::size_t count = 40;
constexpr std::size_t distinct = 2;

struct Cells {
    DeviceBuffer<Word, B> words;
};
using Left = Tagged<struct LeftTag, Cells>;
using Right = Tagged<struct RightTag, Cells>;

// One memory a stage, that shows any batch that is lost, doubled, late or torn.
struct Memories {
    explicit Memories(std::size_t stages) : all(stages * words), scratch(stages * words) {
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i] = 0;
    }
    void step(Ref stream, std::size_t stage, Word* out, const Word* in) {
        ops::step(stream.get(), out, in, all.data() + stage * words, words);
    }
    std::vector<Word> values() const { return {all.data(), all.data() + all.size()}; }
    PinnedBuffer<Word, B> all, scratch;
};

template <class Check>
void for_each_schedule(Check&& check) {
    std::uint64_t seed = 77;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int slots : {1, 2, 3}) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(slots);
            Delay::set({.seed = ++seed, .one_in = 4, .microseconds = 200});
            PipelineOptions options{.schedule = schedule, .slots = slots};
            check(options);
        }
    }
}

template <class P>
void submit_all(P& pipeline) {
    static const Inputs<B> inputs(distinct, words);
    for (std::size_t batch = 0; batch < count; ++batch)
        pipeline.submit(inputs[batch % distinct]).stays();
    pipeline.finish();
}

// What a root, two branches of it, and a join of both remember.
std::vector<Word> expected_diamond() {
    std::vector<Word> all(4 * words, 0);
    for (std::size_t batch = 0; batch < count; ++batch) {
        for (std::size_t i = 0; i < words; ++i) {
            const auto step = [&](std::size_t stage, Word in) {
                Word& memory = all[stage * words + i];
                const Word out = next_word(memory, in);
                memory = next_memory(memory, in);
                return out;
            };
            const Word root = step(0, input_word(batch % distinct, i));
            const Word left = step(1, root), right = step(2, root);
            step(3, left);
            step(3, right);
        }
    }
    return all;
}

} // namespace

TEST_CASE("types: outputs of one type that tags tell apart") {
    for_each_schedule([](const PipelineOptions& options) {
        Memories memories(4);
        const auto root = [&](Ref s, Batch in, Cells& out) {
            memories.step(s, 0, out.words.data(), in.data());
        };
        const auto left = [&](Ref s, const Cells& in, Left& out) {
            memories.step(s, 1, out.words.data(), in.words.data());
        };
        const auto right = [&](Ref s, const Cells& in, Right& out) {
            memories.step(s, 2, out.words.data(), in.words.data());
        };
        // In another order than they are made.
        const auto join = [&](Ref s, const Right& second, const Left& first) {
            memories.step(s, 3, memories.scratch.data(), first.words.data());
            memories.step(s, 3, memories.scratch.data(), second.words.data());
        };
        Pipeline pipeline{
            Stages{Stage{"root", root}, Stage{"left", left}, Stage{"right", right}, Stage{"join", join}},
            Slots{[](int) { return Cells{DeviceBuffer<Word, B>(words)}; },
                  [](int) { return Left{{DeviceBuffer<Word, B>(words)}}; },
                  [](int) { return Right{{DeviceBuffer<Word, B>(words)}}; }},
            options};
        submit_all(pipeline);
        CHECK(memories.values() == expected_diamond());
        CHECK(pipeline.graph_counters().refusals == 0);
    });
}

TEST_CASE("types: a chain of generic callables, and one of outputs of one type") {
    for_each_schedule([](const PipelineOptions& options) {
        const auto make = [](int) { return Cells{DeviceBuffer<Word, B>(words)}; };
        const auto data_of = [](auto& cells) {
            if constexpr (requires { cells.words; })
                return cells.words.data();
            else
                return cells.data();
        };
        for (const bool generic : {true, false}) {
            CAPTURE(generic);
            Memories memories(3);
            const auto expected = expected_memories(3, words, repeating(count, distinct));
            if (generic) {
                const auto stage = [&](std::size_t index) {
                    return [&memories, data_of, index](auto s, auto& in, auto& out) {
                        memories.step(s, index, data_of(out), data_of(in));
                    };
                };
                const auto last = [&](auto s, const auto& in) {
                    memories.step(s, 2, memories.scratch.data(), data_of(in));
                };
                const StageOptions<B> here;
                Pipeline pipeline{Stages{Stage{"first", stage(0), here}, Stage{"middle", stage(1), here},
                                         Stage{"last", last, here}},
                                  Slots{make, make}, options};
                submit_all(pipeline);
            } else {
                const auto first = [&](Ref s, Batch in, Cells& out) {
                    memories.step(s, 0, out.words.data(), in.data());
                };
                const auto middle = [&](Ref s, Cells& in, Cells& out) {
                    memories.step(s, 1, out.words.data(), in.words.data());
                };
                const auto last = [&](Ref s, Cells& in) {
                    memories.step(s, 2, memories.scratch.data(), in.words.data());
                };
                Pipeline pipeline{Stages{Stage{"first", first}, Stage{"middle", middle}, Stage{"last", last}},
                                  Slots{make, make}, options};
                submit_all(pipeline);
            }
            CHECK(memories.values() == expected);
        }
    });
}

TEST_CASE("types: a slot is taken as what it converts to, and may be of a type that cannot be moved") {
    struct Fixed {
        explicit Fixed(int) : words(pipeline_types::words) {}
        Fixed(const Fixed&) = delete;
        Fixed& operator=(const Fixed&) = delete;
        DeviceBuffer<Word, B> words;
    };
    for_each_schedule([](const PipelineOptions& options) {
        Memories memories(3);
        const auto first = [&](Ref s, Batch in, DeviceSpan<Word, B> out) {
            memories.step(s, 0, out.data(), in.data());
        };
        const auto middle = [&](Ref s, DeviceSpan<const Word, B> in, Fixed& out) {
            memories.step(s, 1, out.words.data(), in.data());
        };
        const auto last = [&](Ref s, const Fixed& in) {
            memories.step(s, 2, memories.scratch.data(), in.words.data());
        };
        Pipeline pipeline{
            Stages{Stage{"first", first}, Stage{"middle", middle}, Stage{"last", last}},
            Slots{[](int) { return DeviceBuffer<Word, B>(words); }, [](int slot) { return Fixed(slot); }},
            options};
        submit_all(pipeline);
        CHECK(memories.values() == expected_memories(3, words, repeating(count, distinct)));
    });
}

TEST_CASE("types: branches with no way between them run at the same time, and a join waits for both") {
    if (!streams_overlap<TestBackend>())
        return;
    Delay::set({.one_in = 0});
    static const Inputs<B> inputs(distinct, words);
    for (const bool hold_left : {true, false}) {
        Gate<B> gate;
        Memories memories(4);
        Pipeline pipeline{
            Stages{Stage{"root", [&](Ref s, Batch in,
                                     Cells& out) { memories.step(s, 0, out.words.data(), in.data()); }},
                   Stage{"left",
                         [&](Ref s, const Cells& in, Left& out) {
                             if (hold_left)
                                 gate.hold(s);
                             memories.step(s, 1, out.words.data(), in.words.data());
                         }},
                   Stage{"right",
                         [&](Ref s, const Cells& in, Right& out) {
                             if (!hold_left)
                                 gate.hold(s);
                             memories.step(s, 2, out.words.data(), in.words.data());
                         }},
                   Stage{"join",
                         [&](Ref s, const Left& left, const Right& right) {
                             memories.step(s, 3, memories.scratch.data(), left.words.data());
                             memories.step(s, 3, memories.scratch.data(), right.words.data());
                         }}},
            Slots{[](int) { return Cells{DeviceBuffer<Word, B>(words)}; },
                  [](int) { return Left{{DeviceBuffer<Word, B>(words)}}; },
                  [](int) { return Right{{DeviceBuffer<Word, B>(words)}}; }}};
        pipeline.submit(inputs[0]).stays();
        const std::size_t held = hold_left ? 1 : 2, free = hold_left ? 2 : 1;
        // The branch that is not held comes to its end, and the next batch into the root.
        pipeline.submit(inputs[1]).stays();
        CHECK(eventually([&] { return pipeline.stream(0).is_done(); }));
        CHECK(eventually([&] { return pipeline.stream(free).is_done(); }));
        CHECK_FALSE(pipeline.stream(held).is_done());
        CHECK_FALSE(pipeline.stream(3).is_done());
        gate.open();
        pipeline.finish();
    }
}

} // namespace pipeline_types

// What delays and unusual orders show, in kernels whose accesses are not declared, and right programs that they change
// nothing of: sources, rows of uneven length, short last batches, CPU stages, graphs.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <sluice/ragged.hpp>
#include <sluice/ragged/rows.hpp>
#include <sluice/sluice.hpp>

#include "pipeline/thrown.hpp"
#include "support/doctest.hpp"
#include "support/stream_ops.hpp"

namespace sluice::test::pipeline_stress_races {
namespace {

using B = Host;
using Ref = BasicStreamRef<B>;
constexpr std::size_t words = 8;

template <int>
struct Slot {
    DeviceBuffer<Word, B> words;
};
template <int I>
auto make_slot() {
    return [](int) { return Slot<I>{DeviceBuffer<Word, B>(words)}; };
}
// Atomic, one word at a time, and unseen by the checker, as a kernel's accesses are.
void pass(Ref on, Word* to, const Word* from, Word value) {
    ops::add_racing(on.get(), to, const_cast<Word*>(from), value, words);
}

// first → left, right → last.
struct Fork {
    enum class Mistake {
        none,
        workspace, // left and right pass their words through one workspace
        order,     // right reads, late, what left wrote beside its slot, though nothing orders the two
        calls,     // right's callable takes it that left's was called before
    };
    Mistake mistake = Mistake::none;
    std::size_t batches = 24;

    std::vector<Word> operator()(Schedule schedule) {
        const BasicStream<B> stream;
        std::vector<Word> noted(words * batches), shared(words * batches);
        std::size_t called = 0;
        const auto side = [&](Ref on, Word* to, const Word* from, Word value) {
            if (mistake == Mistake::workspace) {
                pass(on, shared.data(), from, value);
                pass(on, to, shared.data(), 0);
            } else {
                pass(on, to, from, value);
            }
        };
        Pipeline pipeline{
            Stages{Stage{"first",
                         [&](Ref on, std::size_t batch, Slot<0>& out) {
                             fill(on, out.words, static_cast<Word>(100 * batch + 1));
                         }},
                   Stage{"left",
                         [&](Ref on, std::size_t batch, const Slot<0>& in, Slot<1>& out) {
                             ++called;
                             side(on, out.words.data(), in.words.data(), 10);
                             if (mistake == Mistake::order)
                                 pass(on, shared.data() + words * batch, out.words.data(), 0);
                         }},
                   Stage{"right",
                         [&](Ref on, std::size_t batch, const Slot<0>& in, Slot<2>& out) {
                             if (mistake == Mistake::order)
                                 ops::spin(on.get(), 1000);
                             side(on, out.words.data(),
                                  mistake == Mistake::order ? shared.data() + words * batch : in.words.data(),
                                  mistake == Mistake::calls ? static_cast<Word>(called) : 20);
                         }},
                   Stage{"last",
                         [&](Ref on, std::size_t batch, const Slot<1>& left, const Slot<2>& right) {
                             pass(on, noted.data() + words * batch, left.words.data(), 0);
                             ops::step(on.get(), noted.data() + words * batch, right.words.data(),
                                       noted.data() + words * batch, words);
                         }}},
            Slots{make_slot<0>(), make_slot<1>(), make_slot<2>()},
            {.schedule = schedule}};
        for (std::size_t batch = 0; batch < batches; ++batch)
            pipeline.submit(batch);
        pipeline.finish();
        return noted;
    }
};

// The first difference, in as many as 16 seeds. One is nearly always enough.
ScheduleVerdict look(Fork::Mistake mistake, const Stress& stress) {
    return verify_schedules(Fork{mistake}, {.stress = stress, .seeds = 16, .results_per_batch = words},
                            {Schedule::serial, Schedule::overlapped});
}

} // namespace

TEST_CASE("Contract 11: stress: delays show a workspace that two stages share") {
    const ScheduleVerdict verdict =
        look(Fork::Mistake::workspace,
             {.seed = 1, .poison = false, .delay_us = 300, .one_in = 2, .permute = false});
    CHECK_FALSE(verdict);
    CHECK(contains(verdict.difference, "schedule overlapped under stress with seed "));
    CHECK(contains(verdict.difference, ", of batch "));
}

TEST_CASE("Contract 11: stress: a stream that is held back shows a stage that relies on being later") {
    const ScheduleVerdict verdict =
        look(Fork::Mistake::order, {.seed = 1, .poison = false, .delay_us = 500, .one_in = 4});
    CHECK_FALSE(verdict);
    CHECK(contains(verdict.difference, "schedule overlapped under stress with seed "));
}

TEST_CASE(
    "Stress: other orders show a stage that relies on being enqueued behind one that it does not read") {
    CHECK(verify_schedules(Fork{Fork::Mistake::calls}, {Schedule::serial, Schedule::overlapped}));
    const ScheduleVerdict verdict =
        look(Fork::Mistake::calls, {.seed = 1, .poison = false, .delay_us = 0, .permute = true});
    CHECK_FALSE(verdict);
    CHECK(contains(verdict.difference, "schedule overlapped under stress with seed "));
}

// In which order two stages that do not depend on each other are called, for 64 batches.
std::vector<int> calls_under(std::uint64_t seed) {
    const StressScope scope({.seed = seed, .poison = false, .delay_us = 0});
    std::vector<int> calls;
    Pipeline pipeline{
        Stages{Stage{"first", [](Ref on, Word value, Slot<0>& out) { fill(on, out.words, value); }},
               Stage{"left", [&](Ref, const Slot<0>&) { calls.push_back(1); }},
               Stage{"right", [&](Ref, const Slot<0>&) { calls.push_back(2); }}},
        Slots{make_slot<0>()}};
    for (Word batch = 0; batch < 64; ++batch)
        pipeline.submit(batch);
    pipeline.finish();
    return calls;
}

TEST_CASE("Contract 11: stress: a seed gives the same orders again, and another one others") {
    const std::vector<int> calls = calls_under(5);
    CHECK(calls.size() == 128);
    CHECK(calls_under(5) == calls);
    CHECK(calls_under(6) != calls);
}

TEST_CASE("Contract 11: stress: a right fork keeps its bits") {
    const std::uint64_t before = StressScope::counts().orders;
    CHECK(verify_schedules(Fork{}, {.stress = {.delay_us = 100}, .seeds = 2}).difference == "");
    CHECK(StressScope::counts().orders > before);
}

namespace {

constexpr RaggedCapacity capacity{.rows = 8, .values = 64};

// Rows of uneven length, packed by a source's workers, summed on the device, gathered by a CPU stage. The last batch is short.
struct Sums {
    DeviceBuffer<float, B> of_rows{8};
    PinnedBuffer<float, B> on_host{8};
};
struct Total {
    PinnedBuffer<float, B> value{2}; // and the table beside it
};
struct Rows {
    bool forgets_rows = false; // sums rows that the last batch does not have

    std::vector<float> operator()(Schedule schedule) {
        constexpr std::size_t batches = 9;
        using Packer = RaggedPacker<float, B>;
        struct Packed {
            Packer packer{capacity};
            PinnedBuffer<std::size_t, B> rows{1};
            PinnedBuffer<float, B> scale{1};
        };
        Source source{[](int) {
                          Packed packed;
                          packed.scale[0] = 1;
                          return packed;
                      },
                      [](std::size_t index, Packed& out) {
                          out.rows[0] = index + 1 == batches ? 3 : 8;
                          out.scale[0] = static_cast<float>(index % 2 + 1);
                          out.packer.clear();
                          std::vector<float> row;
                          for (std::size_t r = 0; r < out.rows[0]; ++r) {
                              row.assign((index + r) % 5, static_cast<float>(index + 10 * r));
                              out.packer.add_row(row);
                          }
                      },
                      SourceOptions<B>{.workers = 2, .slots = 3, .batches = batches}};
        std::vector<float> totals;
        {
            Pipeline pipeline{
                Stages{Stage{"upload", [](Ref on, const Packed& batch,
                                          RaggedBatch<float, B>& out) { batch.packer.copy_to(on, out); }},
                       Stage{"sum",
                             [](Ref on, const RaggedBatch<float, B>& in, Sums& out) {
                                 ragged::sum(on, out.of_rows, in);
                                 copy(on, out.on_host, out.of_rows);
                             }},
                       Stage{"gather",
                             [this](const Packed& batch, const Sums& in, Total& out) {
                                 const std::size_t rows = forgets_rows ? 8 : batch.rows[0];
                                 out.value[0] = 0;
                                 for (std::size_t r = 0; r < rows; ++r)
                                     out.value[0] += in.on_host[r] * batch.scale[0];
                             }},
                       Stage{"keep", [&](const Total& in) { totals.push_back(in.value[0]); }}},
                Slots{[](int) { return RaggedBatch<float, B>(capacity); }, [](int) { return Sums{}; },
                      [](int) { return Total{}; }},
                {.schedule = schedule}};
            for (const auto& batch : source)
                pipeline.submit(batch);
            pipeline.finish();
        }
        return totals;
    }
};

} // namespace

TEST_CASE("Contract 11: stress: rows of uneven length through a source, the device and CPU stages keep their "
          "bits") {
    CHECK(verify_schedules(Rows{}, {.stress = {.delay_us = 100}, .seeds = 3}).difference == "");
}

TEST_CASE("Contract 11: stress: a CPU stage that sums more rows than the last batch has") {
    CHECK_FALSE(verify_schedules(Rows{true}, {.stress = {.delay_us = 50}, .seeds = 1}));
}

} // namespace sluice::test::pipeline_stress_races

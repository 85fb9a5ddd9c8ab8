// Contracts 1 and 3: slots are written and read in order, and all schedules give the same bits.
#include "pipeline/chain.hpp"
#include "support/delayed_backend.hpp"

#include <cstdlib>

namespace pipeline_schedules {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
constexpr std::size_t words = 48;

// Another seed can be tried, and a failing one repeated, through the environment.
std::uint64_t first_seed() {
    const char* text = std::getenv("SLUICE_TEST_SEED");
    return text == nullptr ? 20260 : std::strtoull(text, nullptr, 10);
}

template <int S>
std::vector<Word> run(Schedule schedule, int slots, std::size_t batches, const Inputs<B>& inputs) {
    Chain<B> chain(S, words, batches);
    {
        auto pipeline = chain.template pipeline<S>({.schedule = schedule, .slots = slots});
        for (std::size_t batch = 0; batch < batches; ++batch)
            pipeline.submit(inputs[batch]);
        pipeline.finish();
        CHECK(pipeline.submitted() == batches);
    }
    return chain.results(batches);
}

template <int S>
void check_all_sizes() {
    const Inputs<B> inputs(100, words);
    std::uint64_t seed = first_seed();
    for (const int slots : {1, 2, 3, 4}) {
        const auto count = static_cast<std::size_t>(slots);
        for (const std::size_t batches :
             {std::size_t{0}, std::size_t{1}, count - 1, count, count + 1, std::size_t{100}}) {
            CAPTURE(slots);
            CAPTURE(batches);
            CAPTURE(++seed);
            const auto expected = chain_results(S, words, batches_from(0, batches));
            Delay::set({.seed = seed, .one_in = 2, .microseconds = batches == 100 ? 150u : 2000u});
            CHECK(run<S>(Schedule::overlapped, slots, batches, inputs) == expected);
            Delay::set({.seed = seed, .one_in = 20});
            CHECK(run<S>(Schedule::serial, slots, batches, inputs) == expected);
        }
    }
}

} // namespace

TEST_CASE("Contracts 1 and 3: one stage gives the same bits under each schedule, whatever the delays") {
    check_all_sizes<1>();
}

TEST_CASE("Contracts 1 and 3: two stages give the same bits under each schedule, whatever the delays") {
    check_all_sizes<2>();
}

TEST_CASE("Contracts 1 and 3: three stages give the same bits under each schedule, whatever the delays") {
    check_all_sizes<3>();
}

TEST_CASE("Contracts 1 and 3: four stages give the same bits under each schedule, whatever the delays") {
    check_all_sizes<4>();
}

TEST_CASE("Contract 3: verify_schedules agrees where the schedules do") {
    const Inputs<B> inputs(20, words);
    std::uint64_t seed = first_seed();
    const auto work = [&](Schedule schedule) {
        Delay::set({.seed = ++seed});
        return run<3>(schedule, 2, 20, inputs);
    };
    const ScheduleVerdict verdict = verify_schedules(work, {Schedule::serial, Schedule::overlapped}, 5);
    CHECK(verdict);
    CHECK(verdict.identical);
    CHECK(verdict.difference.empty());
}

} // namespace pipeline_schedules

// Contracts 1 and 3: slots are written and read in order, and all schedules give the same bits.
#include "pipeline/capturable.hpp"
#include "support/delayed_backend.hpp"
#include "support/hooked_backend.hpp"

#include <cstdlib>
#include <string_view>

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
std::vector<Word> run(Schedule schedule, int slots, const std::vector<std::size_t>& numbers,
                      const Inputs<B>& inputs) {
    const std::size_t batches = numbers.size();
    Chain<B> chain(S, words, batches);
    {
        auto pipeline = chain.template pipeline<S>({.schedule = schedule, .slots = slots});
        for (const std::size_t batch : numbers)
            pipeline.submit(inputs[batch]).stays();
        pipeline.finish();
        CHECK(pipeline.submitted() == batches);
        if (schedule == Schedule::graphed && S > 1 && batches == 100)
            CHECK(pipeline.graph_counters().replays > 50);
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
            const auto numbers = batches_from(0, batches);
            const auto expected = chain_results(S, words, numbers);
            Delay::set({.seed = seed, .one_in = 2, .microseconds = batches == 100 ? 150u : 2000u});
            CHECK(run<S>(Schedule::overlapped, slots, numbers, inputs) == expected);
            Delay::set({.seed = seed, .one_in = 20});
            CHECK(run<S>(Schedule::serial, slots, numbers, inputs) == expected);
            // Batches come again, or nothing would be replayed.
            const auto again = repeating(batches, 3);
            Delay::set({.seed = seed, .one_in = 4, .microseconds = batches == 100 ? 150u : 1000u});
            CHECK(run<S>(Schedule::graphed, slots, again, inputs) == chain_results(S, words, again));
        }
    }
}

// Counts waits of the calling thread.
struct Waits {
    static inline int events = 0;

    template <class>
    static void before(const char*) {}
    template <class, class Native>
    static void before(const char* function, Native) {
        events += std::string_view(function) == "synchronize_event" ? 1 : 0;
    }
};

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
        return run<3>(schedule, 2, batches_from(0, 20), inputs);
    };
    const ScheduleVerdict verdict =
        verify_schedules(work, {Schedule::serial, Schedule::overlapped, Schedule::graphed}, 5);
    CHECK(verdict);
    CHECK(verdict.identical);
    CHECK(verdict.difference.empty());
}

TEST_CASE("Pipeline: a submit that comes after the batch before is through waits for no event") {
    using W = Hooked<TestBackend, Waits>;
    struct Nothing {};
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        PinnedBuffer<Word, W> done(2);
        AnyPipeline<int, W> pipeline(
            Stages{Stage{"first",
                         [&](BasicStreamRef<W> stream, const int&, Nothing&) {
                             ops::add_racing(stream.get(), done.data(), done.data(), 0, 1);
                         }},
                   Stage{"last",
                         [&](BasicStreamRef<W> stream, const Nothing&) {
                             ops::add_racing(stream.get(), done.data() + 1, done.data() + 1, 0, 1);
                         }}},
            Slots{[](int) { return Nothing{}; }},
            PipelineOptions{.schedule = schedule, .in_flight = 1, .graphs = {.on_refusal = nullptr}});
        Waits::events = 0;
        for (int batch = 0; batch < 12; ++batch) {
            pipeline.submit(0);
            for (std::size_t stage = 0; stage < 2; ++stage) {
                while (!pipeline.stream(stage).is_done()) {
                }
            }
        }
        CHECK(Waits::events == 0);
        CHECK((schedule != Schedule::graphed || pipeline.graph_counters().replays > 0));
    }
}

} // namespace pipeline_schedules

// A share of the device, advised from what was noted of stages together and alone.
#include <cstddef>
#include <string>

#include <sluice/report/advice.hpp>

#include "report/widest_line.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_advice_shares {

using namespace sluice;
using namespace sluice::test;

namespace {

struct Took {
    double first, second;
};

// What was noted of so many batches of two stages on the same device.
PipelineTimes noted(Took took) {
    PipelineTimes times;
    times.stage_names = {"heavy", "detect"};
    times.stage_units = {"GPU 0", "GPU 0"};
    times.multiprocessors = 132;
    times.share_unit = 8;
    for (std::size_t batch = 0; batch < 9; ++batch) {
        const double begin = 1000.0 * static_cast<double>(batch), odd = batch == 3 ? 500 : 0;
        times.stages.push_back({0, batch, begin, begin + took.first + odd});
        times.stages.push_back({1, batch, begin, begin + took.second + odd});
    }
    return times;
}

std::string advised(Took beside, Took alone) { return detail::advice::share_of(noted(beside), noted(alone)); }

} // namespace

TEST_CASE("advice: a share of the device is for a short stage that takes long beside a long one") {
    CHECK(advised({200, 175}, {190, 14}) ==
          "detect takes 14 us alone and 175 us beside heavy; where its kernels wait for that one's, "
          "StageOptions::multiprocessors = 8 gives it some of its own, for a short answer and not for rate: "
          "heavy has "
          "124 of 132 then and takes 6 % longer or more where it fills the device.");
    CHECK(advised({200, 60}, {190, 14}).empty()); // 3 times as long, and what is due to the notes
    CHECK_FALSE(advised({200, 63}, {190, 14}).empty());
    CHECK(advised({200, 175}, {55, 14}).empty()); // neither is long beside the other
    CHECK_FALSE(advised({200, 175}, {57, 14}).empty());
    CHECK(contains(advised({175, 200}, {14, 190}), "heavy takes 14 us alone and 175 us beside detect"));
    CHECK_FALSE(advised({200, 175}, {56, 14}).empty()); // four times as long
    CHECK_FALSE(advised({200, 62}, {190, 14}).empty()); // three times, and 20 us
    CHECK(advised({200, 61.9}, {190, 14}).empty());
    CHECK(advised({200, 175}, {190, 0}).empty()); // which has not worked alone
    CHECK(advised({190, 14}, {190, 14}).empty());
}

TEST_CASE("advice: a share is of a device that stages share and that can be shared out") {
    const PipelineTimes alone = noted({190, 14});
    PipelineTimes beside = noted({200, 175});
    beside.multiprocessors = 9; // one is left to the others
    CHECK(contains(detail::advice::share_of(beside, alone), "heavy has 1 of 9 then and takes 800 % longer"));
    beside.multiprocessors = 8;
    CHECK(detail::advice::share_of(beside, alone).empty());
    beside.multiprocessors = 132;
    beside.share_unit = 1;
    CHECK(contains(detail::advice::share_of(beside, alone), "StageOptions::multiprocessors = 1 gives"));
    beside.share_unit = 0;
    CHECK(detail::advice::share_of(beside, alone).empty());
    beside = noted({200, 175});
    // The middle one of what was noted, of four the third.
    for (std::size_t i = 0; i < 4; ++i)
        beside.stages[2 * i + 1].end = beside.stages[2 * i + 1].begin + 100 + 10 * static_cast<double>(i);
    beside.stages.resize(8);
    CHECK(contains(detail::advice::share_of(beside, alone), "and 120 us beside heavy"));
    beside = noted({200, 175});
    beside.stage_units[0] = "GPU 1";
    CHECK(detail::advice::share_of(beside, alone).empty()); // each has a device to itself
    beside.stage_units = {"CPU", "CPU"};
    CHECK(detail::advice::share_of(beside, alone).empty());
    beside = noted({200, 175});
    beside.shares = "Of the 132 multiprocessors of device 0, detect has 8.";
    CHECK(detail::advice::share_of(beside, alone).empty());
    beside = noted({200, 175});
    beside.share_unit = beside.multiprocessors = 0; // as on Host
    CHECK(detail::advice::share_of(beside, alone).empty());
}

TEST_CASE(
    "advice: of several stages that take long, a share is for the one that takes most more than alone") {
    // Of equal ones the first, beside the first that is long.
    for (const double other : {175.0, 161.0}) {
        PipelineTimes together = noted({200, 175}), each = noted({190, 14});
        for (PipelineTimes* of : {&together, &each}) {
            of->stage_names = {"heavy", "detect", "track", "also heavy"};
            of->stage_units.assign(4, "GPU 0");
            for (std::size_t batch = 0; batch < 9; ++batch) {
                const double begin = 1000.0 * static_cast<double>(batch);
                of->stages.push_back({2, batch, begin, begin + (of == &each ? 14.0 : other)});
                of->stages.push_back({3, batch, begin, begin + 190});
            }
        }
        CHECK(contains(detail::advice::share_of(together, each),
                       "detect takes 14 us alone and 175 us beside heavy;"));
    }
    for (const bool last : {false, true}) {
        PipelineTimes together = noted({200, 175}), each = noted({190, 14});
        for (PipelineTimes* of : {&together, &each}) {
            of->stage_names.push_back("track");
            of->stage_units.push_back("GPU 0");
            for (std::size_t batch = 0; batch < 9; ++batch) {
                const double begin = 1000.0 * static_cast<double>(batch);
                of->stages.push_back({2, batch, begin, begin + (of == &each ? 10.0 : last ? 190.0 : 120.0)});
            }
        }
        const std::string text = detail::advice::share_of(together, each);
        CHECK(contains(text, last ? "track takes 10 us alone" : "detect takes 14 us alone"));
    }
}

TEST_CASE("advice: a table says which share is advised") {
    Advice advice;
    advice.sentence = "Nothing else.";
    advice.share = advised({200, 175}, {190, 14});
    advice.trials.resize(1);
    advice.trials[0].predicted = 0.5;
    const std::string table = to_table(advice);
    CHECK(contains(table, " 0.5 us "));
    CHECK(contains(table, "detect takes 14 us alone and 175 us beside heavy"));
    CHECK(widest_line(table) <= 80);
}

} // namespace report_advice_shares

// Which batches' times are noted, and which of them a report is about.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <sluice/pipeline/detail/core/noted_windows.hpp>
#include <sluice/pipeline/detail/fill_times.hpp>

#include "support/doctest.hpp"

namespace pipeline_noted_windows {

using namespace sluice;
using detail::NotedWindows;

namespace {

// The windows of 10 batches that are noted, of batches that come every `step` nanoseconds.
std::vector<std::size_t> noted(std::size_t count, std::int64_t step) {
    NotedWindows windows(10);
    std::vector<std::size_t> result;
    for (std::size_t batch = 0; batch < 10 * count; ++batch) {
        if (batch > 0)
            windows.comes(batch, static_cast<std::int64_t>(batch) * step);
        if (batch % 10 == 9 && windows.hold(batch))
            result.push_back(batch / 10);
        CHECK(windows.hold(batch) == windows.hold(batch / 10 * 10));
    }
    return result;
}

// Batches from `first` to `last` of a stage.
void add(std::vector<StageTime>& times, std::size_t stage, std::size_t first, std::size_t last) {
    for (std::size_t batch = first; batch <= last; ++batch)
        times.push_back({stage, batch, 0, 1, 0});
}
std::vector<std::size_t> kept(std::vector<StageTime> times, std::size_t most) {
    const std::size_t last = detail::keep_last_run(times, most);
    std::vector<std::size_t> batches;
    for (const StageTime& time : times) {
        if (time.stage == times[0].stage)
            batches.push_back(time.batch);
    }
    if (!batches.empty())
        CHECK(batches.back() == last);
    return batches.empty() ? batches : std::vector{batches.front(), batches.back(), batches.size()};
}

} // namespace

TEST_CASE("noted windows: all of slow batches, of fast ones the first four and then one in eight") {
    CHECK(noted(7, 400'000) == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6});
    CHECK(noted(80, 399'000) == std::vector<std::size_t>{0, 1, 2, 3, 8, 16, 24, 32, 40, 48, 56, 64, 72});
}

TEST_CASE("fill notes: the last batches in their order, wherever the ring begins") {
    for (std::size_t count = 0; count < 12; ++count) {
        CAPTURE(count);
        detail::FillNotes notes;
        notes.make(5);
        std::vector<std::size_t> expected;
        for (std::size_t batch = 0; batch < count; ++batch)
            notes.claimed(batch, 0)->settle(batch != 7); // a worker is still at it
        for (std::size_t batch = count > 5 ? count - 5 : 0; batch < count; ++batch) {
            if (batch != 7)
                expected.push_back(batch);
        }
        std::vector<std::size_t> found;
        for (const FillTime& time : notes.all())
            found.push_back(time.batch);
        CHECK(found == expected);
    }
}

TEST_CASE("fill notes: two workers never write one note at the same time") {
    detail::FillNotes notes;
    notes.make(4);
    detail::FillNote* const slow = notes.claimed(0, 0);
    REQUIRE(slow != nullptr);
    for (std::size_t batch = 1; batch < 11; ++batch) {
        detail::FillNote* const note = notes.claimed(batch, 1);
        CHECK((note == nullptr) == (batch % 4 == 0));
        if (note != nullptr)
            note->settle(true);
        notes.given(batch, 1);
    }
    slow->settle(true); // far behind the others by now
    std::vector<std::size_t> found;
    for (const FillTime& time : notes.all()) {
        found.push_back(time.batch);
        CHECK(time.given > 0);
    }
    CHECK(found == std::vector<std::size_t>{7, 9, 10});
    CHECK(notes.claimed(12, 0) == slow);
}

TEST_CASE("noted windows: what is kept together") {
    NotedWindows windows(10);
    for (std::size_t batch = 1; batch < 170; ++batch)
        windows.comes(batch, 0);
    CHECK(windows.stretch_before(165) == 160);
    CHECK(windows.stretch_before(35) == 20);
    CHECK(windows.end_of(165) == 170);
    windows.restart();
    CHECK(windows.hold(5));
    CHECK_FALSE(windows.hold(165));
}

TEST_CASE("noted runs: the latest of all stages, not the tail that few have noted") {
    std::vector<StageTime> times;
    add(times, 0, 0, 30);
    add(times, 1, 0, 30);
    CHECK(kept(times, 100) == std::vector<std::size_t>{0, 30, 31});
    CHECK(kept(times, 12) == std::vector<std::size_t>{19, 30, 12});
    add(times, 0, 80, 95);
    add(times, 1, 80, 93);
    CHECK(kept(times, 12) == std::vector<std::size_t>{82, 93, 12});
    CHECK(kept(times, 20) == std::vector<std::size_t>{80, 93, 14});
    add(times, 1, 160, 163); // only one stage
    add(times, 0, 170, 176); // a run of both, but a short one
    add(times, 1, 170, 176);
    CHECK(kept(times, 20) == std::vector<std::size_t>{80, 93, 14});
    add(times, 0, 177, 177);
    add(times, 1, 177, 177);
    CHECK(kept(times, 20) == std::vector<std::size_t>{170, 177, 8});
}

TEST_CASE("noted runs: a stage need not have noted batches for which it does not run") {
    const auto runs = [](std::size_t stage, std::size_t batch) { return stage != 1 || batch % 4 == 3; };
    std::vector<StageTime> times;
    add(times, 0, 0, 30);
    // 15 is missing, and 29 is the last one of a run.
    for (const std::size_t batch : {3U, 7U, 11U, 19U, 23U, 27U, 29U})
        add(times, 1, batch, batch);
    add(times, 2, 0, 29);
    CHECK(detail::keep_last_run(times, 20, runs) == 29);
    REQUIRE(times.size() == 14 + 4 + 14);
    CHECK(times.front().batch == 16);
    CHECK(times.back().batch == 29);
}

TEST_CASE("noted runs: short ones where there is nothing else, and nothing of nothing") {
    std::vector<StageTime> times;
    CHECK(kept(times, 10).empty());
    add(times, 2, 5, 6);
    CHECK(kept(times, 10) == std::vector<std::size_t>{5, 6, 2});
    add(times, 2, 9, 11);
    CHECK(kept(times, 10) == std::vector<std::size_t>{9, 11, 3});
}

} // namespace pipeline_noted_windows

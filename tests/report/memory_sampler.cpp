// Device memory over time, sampled by a thread.
#include <chrono>
#include <cstddef>
#include <thread>

#include <sluice/backend/host.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/report/memory_sampler.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_memory_sampler {

using namespace sluice;
using namespace sluice::test;
using namespace std::chrono_literals;

namespace {

/// Whether `holds()` comes true within 20 s.
template <class Holds>
bool comes_true(Holds&& holds) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > until)
            return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

// Takes a while to answer.
struct Slow : Host {
    static std::size_t device_memory_in_use() {
        std::this_thread::sleep_for(50us);
        return Host::device_memory_in_use();
    }
};

struct Failing : Host {
    static inline thread_local bool may_be_asked = false; // where the test says so: on its own thread
    static std::size_t device_memory_in_use() {
        if (!may_be_asked)
            throw Error("the device is gone");
        return 7;
    }
};

} // namespace

TEST_CASE("a sampler that sleeps for long ends at once") {
    const auto begun = std::chrono::steady_clock::now();
    {
        MemorySampler<Host> sampler(1h);
        std::this_thread::sleep_for(20ms); // its thread sleeps by now
        sampler.stop();
    }
    CHECK(std::chrono::steady_clock::now() - begun < 30min);
}

TEST_CASE("a sampler sees memory rise and fall") {
    const std::size_t before = Host::device_memory_in_use();
    constexpr std::size_t size = 1 << 20;
    MemorySampler<Host> sampler(500us);
    const auto zero = std::chrono::steady_clock::now();
    {
        const DeviceBuffer<std::byte, Host> buffer(size);
        CHECK(comes_true([&] { return sampler.peak() == before + size; }));
    }
    const std::size_t then = sampler.samples();
    CHECK(comes_true([&] { return sampler.samples() > then + 10; }));
    sampler.stop();
    const std::size_t count = sampler.samples();

    Timeline timeline;
    CHECK(timeline.add_counter("another") == 0);
    CHECK(sampler.add_to(timeline, zero) == 1);
    REQUIRE(timeline.counters().size() == 2);
    CHECK(timeline.counters()[1].name == "device memory");
    CHECK(timeline.counters()[1].unit == "B");
    const auto& values = timeline.values();
    // Six at most: the first and the last of the three stretches in which nothing changed.
    REQUIRE(values.size() >= 3);
    CHECK(values.size() <= 6);
    CHECK(count >= 12);
    CHECK(values.front().value == static_cast<double>(before));
    CHECK(values.front().time <= 0);
    CHECK(values.back().value == static_cast<double>(before));
    bool rose = false;
    for (std::size_t i = 0; i < values.size(); ++i) {
        CHECK(values[i].counter == 1);
        CHECK((i == 0 || values[i].time > values[i - 1].time));
        rose = rose || values[i].value == static_cast<double>(before + size);
    }
    CHECK(rose);

    sampler.stop();
    CHECK(sampler.samples() == count);
}

TEST_CASE("of a timeline with a known zero, a sampler adds what belongs to its spans") {
    const auto now = [] {
        return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    };
    const std::size_t before = Host::device_memory_in_use();
    MemorySampler<Host> sampler(500us);
    const auto sampled = [&] {
        const std::size_t then = sampler.samples();
        CHECK(comes_true([&] { return sampler.samples() > then + 2; }));
    };
    sampled();
    const DeviceBuffer<std::byte, Host> first(1000);
    sampled();
    const double begin = now();
    sampled();
    const DeviceBuffer<std::byte, Host> second(500);
    sampled();
    const double end = now();
    sampled();
    const DeviceBuffer<std::byte, Host> third(100);
    sampler.stop();

    Timeline timeline;
    timeline.set_clock_zero(begin - 7);
    const std::size_t row = timeline.add_row("encode");
    timeline.add({.row = row, .begin = 7, .end = 7 + end - begin});
    CHECK(sampler.add_to(timeline) == 0);
    const auto& values = timeline.values();
    REQUIRE(values.size() >= 2);
    CHECK(values.front().time == 7);
    CHECK(values.front().value == static_cast<double>(before + 1000));
    CHECK(values.back().value == static_cast<double>(before + 1500));
    for (const TimelineValue& value : values)
        CHECK((value.time >= 7 && value.time <= timeline.end()));

    // Where nothing was sampled in the meantime, what held before; and nothing, where nothing did.
    for (const double zero : {end + 1e9, begin - 1e9}) {
        Timeline elsewhere;
        elsewhere.set_clock_zero(zero);
        elsewhere.add({.row = elsewhere.add_row("encode"), .begin = 1, .end = 2});
        sampler.add_to(elsewhere, "memory");
        CHECK(elsewhere.counters().at(0).name == "memory");
        REQUIRE(elsewhere.values().size() == (zero > end ? 1 : 0));
        if (zero > end)
            CHECK(elsewhere.values()[0].value == static_cast<double>(before + 1600));
    }

    Timeline anywhere("by hand");
    anywhere.add({.row = anywhere.add_row("encode"), .begin = 1, .end = 2});
    CHECK(
        text_of([&] { sampler.add_to(anywhere); }) ==
        "MemorySampler::add_to: the timeline 'by hand' does not say where its zero is on the steady clock; "
        "take it from timeline_of, call Timeline::set_clock_zero, or give the zero: add_to(timeline, zero)");
    CHECK(anywhere.counters().empty());
}

TEST_CASE("a last sample is taken when a sampler stops") {
    const std::size_t before = Host::device_memory_in_use();
    MemorySampler<Host> sampler(1h);
    const DeviceBuffer<std::byte, Host> buffer(100);
    sampler.stop();
    CHECK(sampler.samples() == 2);
    CHECK(sampler.peak() == before + 100);
}

TEST_CASE("a sampler is asked while it samples, and as its backend fails") {
    MemorySampler<Slow> sampler(1us);
    Timeline known("work");
    known.set_clock_zero(1);
    known.add({.row = known.add_row("encode"), .begin = 0, .end = 1e12});
    for (int i = 0; i < 200; ++i) {
        Timeline timeline("work"), again = known;
        (void)sampler.add_to(timeline, MemorySampler<Slow>::Clock::now());
        (void)sampler.add_to(again);
        std::this_thread::sleep_for(10us);
    }
    for (int i = 0; i < 50; ++i) {
        Failing::may_be_asked = true;
        const MemorySampler<Failing> failing(1us);
        CHECK(comes_true([&] {
            Timeline timeline("work");
            try {
                (void)failing.add_to(timeline, MemorySampler<Failing>::Clock::now());
                return false;
            } catch (const Error&) {
                return true;
            }
        }));
    }
    Failing::may_be_asked = false;
}

TEST_CASE("wrong intervals are refused, and a backend's error is told") {
    CHECK(text_of([] { MemorySampler<Host> sampler(0us); }) ==
          "MemorySampler: the interval in us is 0; expected 1 to 31536000000000");
    CHECK(text_of([] { MemorySampler<Host> sampler(std::chrono::microseconds::max()); }) ==
          "MemorySampler: the interval in us is 9223372036854775807; expected 1 to 31536000000000");
    CHECK(text_of([] { MemorySampler<Failing> sampler(1h); }) == "the device is gone");

    Failing::may_be_asked = true;
    MemorySampler<Failing> sampler(1h);
    Failing::may_be_asked = false;
    sampler.stop();
    Timeline timeline;
    CHECK(text_of([&] { sampler.add_to(timeline); }) == "the device is gone");
    CHECK(timeline.counters().empty());
    CHECK(sampler.peak() == 7);
}

} // namespace report_memory_sampler

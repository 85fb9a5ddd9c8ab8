// Perfetto traces, read back by a decoder of protobuf that knows nothing of the writer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sluice/report/perfetto.hpp>

#include "report/files.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace report_perfetto {

using namespace sluice;
using namespace sluice::test;

namespace {

/// A message's fields by number, in order: numbers of wire type 0, bytes of wire type 2.
struct Fields {
    std::multimap<std::uint64_t, std::uint64_t> numbers;
    std::multimap<std::uint64_t, std::string> bytes;
    std::multimap<std::uint64_t, double> reals; ///< Of wire type 1.

    std::uint64_t number(std::uint64_t field) const {
        REQUIRE(numbers.count(field) == 1);
        return numbers.find(field)->second;
    }
    const std::string& text(std::uint64_t field) const {
        REQUIRE(bytes.count(field) == 1);
        return bytes.find(field)->second;
    }
    std::uint64_t number_or_0(std::uint64_t field) const { return numbers.count(field) ? number(field) : 0; }
};

std::uint64_t read_varint(const std::string& bytes, std::size_t& at) {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        REQUIRE(at < bytes.size());
        REQUIRE(shift < 64);
        const auto byte = static_cast<unsigned char>(bytes[at++]);
        value |= std::uint64_t{byte & 0x7Fu} << shift;
        if (byte < 0x80)
            return value;
    }
}

Fields decode(const std::string& bytes) {
    Fields fields;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::uint64_t tag = read_varint(bytes, at);
        REQUIRE((tag >> 3) > 0);
        if ((tag & 7) == 0) {
            fields.numbers.emplace(tag >> 3, read_varint(bytes, at));
        } else if ((tag & 7) == 1) {
            REQUIRE(bytes.size() - at >= 8);
            double value = 0;
            std::memcpy(&value, bytes.data() + at, 8); // where the tests run, the lowest byte is first too
            fields.reals.emplace(tag >> 3, value);
            at += 8;
        } else {
            REQUIRE((tag & 7) == 2);
            const std::uint64_t size = read_varint(bytes, at);
            REQUIRE(size <= bytes.size() - at);
            fields.bytes.emplace(tag >> 3, bytes.substr(at, size));
            at += size;
        }
    }
    return fields;
}

struct Track {
    std::string name;
    std::uint64_t parent = 0;
    std::uint64_t rank = 0;
    bool counts = false;
    std::uint64_t unit = 0;
    std::string unit_name;
};

struct Value {
    std::uint64_t track = 0;
    std::uint64_t time = 0;
    double value = 0;
};

struct Slice {
    std::uint64_t track = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string name, category;
    std::uint64_t batch = 0;
};

/// A trace as Perfetto takes it: events in the order of their times, each end closing its track's last begin.
struct Trace {
    std::map<std::uint64_t, Track> tracks;
    std::vector<std::uint64_t> order; ///< Tracks as they came.
    std::vector<Slice> slices;
    std::vector<Value> values;

    explicit Trace(const std::string& bytes) {
        std::map<std::uint64_t, std::vector<std::size_t>> open;
        std::uint64_t last = 0;
        std::size_t packets = 0;
        const Fields trace = decode(bytes);
        REQUIRE(trace.numbers.empty());
        for (const auto& [field, packet_bytes] : trace.bytes) {
            REQUIRE(field == 1);
            const Fields packet = decode(packet_bytes);
            CHECK(packet.number(10) != 0); // a sequence
            CHECK(packet.number_or_0(13) == (packets++ == 0 ? 1 : 0));
            if (packet.bytes.count(60)) {
                add_track(decode(packet.text(60)));
                continue;
            }
            const std::uint64_t time = packet.number(8);
            CHECK(time >= last);
            last = time;
            const Fields event = decode(packet.text(11));
            const std::uint64_t track = event.number(11);
            REQUIRE(tracks.count(track) == 1);
            CHECK(tracks.at(track).counts == (event.number(9) == 4));
            if (event.number(9) == 4) {
                REQUIRE(event.reals.count(44) == 1);
                values.push_back({track, time, event.reals.find(44)->second});
            } else if (event.number(9) == 1) {
                const Fields annotation = decode(event.text(4));
                CHECK(annotation.text(10) == "batch");
                CHECK(annotation.number(3) == event.number(52));
                CHECK(open[track].empty()); // slices of a track are disjoint
                open[track].push_back(slices.size());
                slices.push_back({track, time, 0, event.text(23), event.text(22), event.number(52)});
            } else {
                REQUIRE(event.number(9) == 2);
                REQUIRE_FALSE(open[track].empty());
                slices[open[track].back()].end = time;
                open[track].pop_back();
            }
        }
        for (const auto& [track, left] : open)
            CHECK(left.empty());
    }

    std::string path(std::uint64_t track) const {
        const Track& found = tracks.at(track);
        return (found.parent ? path(found.parent) + "/" : "") + found.name;
    }
    std::vector<std::string> paths() const {
        std::vector<std::string> all;
        for (const std::uint64_t track : order)
            all.push_back(path(track));
        return all;
    }

private:
    void add_track(const Fields& fields) {
        const std::uint64_t uuid = fields.number(1);
        CHECK(uuid != 0);
        CHECK(fields.number(11) == 3); // shows its children by rank
        CHECK(fields.number(15) == 2); // is not merged with its siblings
        const std::uint64_t parent = fields.number_or_0(5);
        if (parent != 0)
            REQUIRE(tracks.count(parent) == 1);
        for (const auto& [other, track] : tracks)
            CHECK((track.parent != parent || track.rank != fields.number(12)));
        Track made;
        made.name = fields.text(2);
        made.parent = parent;
        made.rank = fields.number(12);
        if (fields.bytes.count(8) > 0) {
            const Fields counter = decode(fields.text(8));
            made.counts = true;
            made.unit = counter.number_or_0(3);
            made.unit_name = counter.bytes.count(6) > 0 ? counter.text(6) : "";
        }
        const bool added = tracks.emplace(uuid, made).second;
        REQUIRE(added);
        order.push_back(uuid);
    }
};

std::uint64_t ns(double microseconds) { return static_cast<std::uint64_t>(microseconds * 1000 + 0.5); }

} // namespace

TEST_CASE("a unit's rows are tracks below it, and each span a slice") {
    Timeline timeline("run");
    timeline.add_row("source", "CPU");
    timeline.add_row("encode", "GPU 0");
    timeline.add_row("encode", "GPU 0");
    timeline.add_row("decode", "CPU");
    timeline.add_row("loose");
    timeline.add({1, 7, 1.5, 2.25, SpanKind::copy});
    timeline.add({0, 300, 0, 1e6});
    const Trace trace(to_perfetto(timeline));
    CHECK(trace.paths() == std::vector<std::string>{"run", "run/CPU", "run/CPU/source", "run/CPU/decode",
                                                    "run/GPU 0", "run/GPU 0/encode", "run/GPU 0/encode",
                                                    "run/loose"});
    REQUIRE(trace.slices.size() == 2);
    CHECK(trace.path(trace.slices[0].track) == "run/CPU/source");
    CHECK(trace.slices[0].begin == 0);
    CHECK(trace.slices[0].end == 1'000'000'000);
    CHECK(trace.slices[0].name == "batch 300");
    CHECK(trace.slices[0].category == "compute");
    CHECK(trace.slices[0].batch == 300);
    CHECK(trace.slices[1].begin == 1500);
    CHECK(trace.slices[1].end == 2250);
    CHECK(trace.slices[1].name == "batch 7 copy");
    CHECK(trace.slices[1].category == "copy");
}

TEST_CASE("spans that overlap go to further tracks, and none is lost") {
    std::mt19937 random(3);
    Timeline timeline;
    for (int row = 0; row < 4; ++row)
        timeline.add_row("row " + std::to_string(row), row < 2 ? "GPU" : "");
    const char* const kinds[] = {"compute", "copy", "source", "wait"};
    using Key = std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t, std::string>;
    std::vector<Key> expected;
    for (std::size_t i = 0; i < 2000; ++i) {
        const std::size_t row = random() % 4;
        const double begin = static_cast<double>(random() % 1'000'000) / 997;
        // Some last no time, and some follow each other closer than a nanosecond.
        const double end = begin + (i % 5 == 0 ? 0 : static_cast<double>(random() % 10'000) / 3331);
        const std::size_t kind = random() % 4;
        timeline.add({row, i, begin, end, static_cast<SpanKind>(kind)});
        timeline.add({row, i, end, end + 0.0003, static_cast<SpanKind>(kind)});
        const std::string name = "row " + std::to_string(row);
        expected.emplace_back(name, i, ns(begin), ns(end), kinds[kind]);
        expected.emplace_back(name, i, ns(end), ns(end + 0.0003), kinds[kind]);
    }
    const Trace trace(to_perfetto(timeline));
    std::vector<Key> found;
    std::size_t further = 0;
    for (const Slice& slice : trace.slices) {
        std::uint64_t track = slice.track;
        const std::uint64_t parent = trace.tracks.at(track).parent;
        const bool below = parent != 0 && trace.tracks.at(parent).name != "GPU";
        if (below) {
            const std::string name = trace.tracks.at(parent).name;
            CHECK(trace.tracks.at(track).name ==
                  name + " (" + std::to_string(trace.tracks.at(track).rank + 1) + ")");
            track = parent;
            ++further;
        }
        found.emplace_back(trace.tracks.at(track).name, slice.batch, slice.begin, slice.end, slice.category);
        CHECK(slice.name == "batch " + std::to_string(slice.batch) +
                                (slice.category == "compute" ? "" : " " + slice.category));
    }
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    CHECK((found == expected));
    CHECK(further > 100);
}

TEST_CASE("a track more than needed is not there") {
    Timeline timeline;
    timeline.add_row("encode");
    for (std::size_t i = 0; i < 100; ++i)
        timeline.add({0, i, 0.1 * static_cast<double>(i), 0.1 * static_cast<double>(i + 1)});
    CHECK(Trace(to_perfetto(timeline)).paths() == std::vector<std::string>{"encode"});
    timeline.add({0, 100, 5, 5.05});
    CHECK(Trace(to_perfetto(timeline)).paths() == std::vector<std::string>{"encode", "encode/encode (2)"});
}

TEST_CASE("times before zero move all to the first begin") {
    Timeline timeline;
    timeline.add_row("encode");
    timeline.add({0, 0, 10, 20});
    timeline.add({0, 1, -5.5, 0});
    const Trace trace(to_perfetto(timeline));
    REQUIRE(trace.slices.size() == 2);
    CHECK(trace.slices[0].begin == 0);
    CHECK(trace.slices[0].end == 5500);
    CHECK(trace.slices[1].begin == 15'500);
}

TEST_CASE("counters are counter tracks, and keep every value") {
    Timeline timeline("run");
    timeline.add_row("encode", "GPU 0");
    timeline.add({0, 0, 10, 20});
    const std::size_t power = timeline.add_counter("power", "W");
    const std::size_t memory = timeline.add_counter("memory", "B");
    timeline.add_value(memory, 12.5, 3e9);
    timeline.add_value(memory, -2, 1);
    timeline.add_value(power, 15, -0.125);
    const Trace trace(to_perfetto(timeline));
    CHECK(trace.paths() ==
          std::vector<std::string>{"run", "run/GPU 0", "run/GPU 0/encode", "run/power", "run/memory"});
    const Track& first = trace.tracks.at(trace.order[3]);
    const Track& second = trace.tracks.at(trace.order[4]);
    CHECK(first.unit_name == "W");
    CHECK(first.unit == 0);
    CHECK(second.unit_name.empty());
    CHECK(second.unit == 3); // bytes
    REQUIRE(trace.values.size() == 3);
    const Value expected[] = {
        {trace.order[4], 0, 1}, {trace.order[4], 14'500, 3e9}, {trace.order[3], 17'000, -0.125}};
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(trace.values[i].track == expected[i].track);
        CHECK(trace.values[i].time == expected[i].time);
        CHECK(trace.values[i].value == expected[i].value);
    }
    REQUIRE(trace.slices.size() == 1);
    CHECK(trace.slices[0].begin == 12'000);
    timeline.add_value(power, 2e15, 0);
    CHECK(contains(text_of([&] { to_perfetto(timeline); }), "a value of counter 'power'"));
}

TEST_CASE("large numbers and broken names arrive") {
    Timeline timeline("\xFFtitle\x02");
    timeline.add_row("", "\u00fcnit");
    timeline.add({0, std::numeric_limits<std::size_t>::max(), 1e15 - 1, 1e15});
    const Trace trace(to_perfetto(timeline));
    CHECK(trace.paths().at(2) == "\xEF\xBF\xBDtitle\xEF\xBF\xBD/\u00fcnit/");
    CHECK(trace.slices.at(0).batch == std::numeric_limits<std::size_t>::max());
    CHECK(trace.slices.at(0).end == 1'000'000'000'000'000'000);

    timeline.add({0, 0, 0, 2e15});
    CHECK(contains(text_of([&] { to_perfetto(timeline); }), "to_perfetto: "));
    CHECK(contains(text_of([&] { write_perfetto(timeline, "x"); }), "within 1e15 us"));
    CHECK(Trace(to_perfetto(Timeline())).slices.empty());
}

TEST_CASE("a trace is replaced whole or not at all") {
    Timeline timeline("run");
    timeline.add_row("encode", "GPU 0");
    timeline.add({0, 0, 0, 1});
    check_files(to_perfetto(timeline), [&](const std::string& path) { write_perfetto(timeline, path); });
}

} // namespace report_perfetto

// Bodies of perfetto.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sluice/report/detail/counter_steps.hpp>
#include <sluice/report/detail/drawing_text.hpp>
#include <sluice/report/detail/timeline_lanes.hpp>
#include <sluice/report/detail/write_file.hpp>
#include <sluice/report/timeline_report.hpp>

namespace sluice::detail::drawing {

/// A protobuf message (https://protobuf.dev/programming-guides/encoding).
struct Message {
    std::string bytes;

    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7)
            bytes += static_cast<char>(static_cast<unsigned char>(value | 0x80));
        bytes += static_cast<char>(value);
    }
    /// A field of wire type 0.
    void number(std::uint32_t field, std::uint64_t value) {
        varint(std::uint64_t{field} << 3);
        varint(value);
    }
    /// A field of wire type 1: a double, its lowest byte first.
    void real(std::uint32_t field, double value) { fixed64(field, std::bit_cast<std::uint64_t>(value)); }
    void fixed64(std::uint32_t field, std::uint64_t bits) {
        varint(std::uint64_t{field} << 3 | 1);
        for (int byte = 0; byte < 8; ++byte)
            bytes += static_cast<char>(static_cast<unsigned char>(bits >> (8 * byte)));
    }
    /// A field of wire type 2: a string or a message.
    void text(std::uint32_t field, const std::string& value) {
        varint(std::uint64_t{field} << 3 | 2);
        varint(value.size());
        bytes += value;
    }
};

/// Field numbers of github.com/google/perfetto, folder protos/perfetto/trace: trace.proto, trace_packet.proto,
/// track_event/{track_descriptor,counter_descriptor,track_event,debug_annotation}.proto; of version 59.1.
namespace field {
inline constexpr std::uint32_t trace_packet = 1;
inline constexpr std::uint32_t packet_timestamp = 8;
inline constexpr std::uint32_t packet_sequence = 10; // trusted_packet_sequence_id
inline constexpr std::uint32_t packet_track_event = 11;
inline constexpr std::uint32_t packet_sequence_flags = 13;
inline constexpr std::uint32_t packet_track_descriptor = 60;
inline constexpr std::uint32_t track_uuid = 1;
inline constexpr std::uint32_t track_name = 2;
inline constexpr std::uint32_t track_parent = 5;
inline constexpr std::uint32_t track_counter = 8;
inline constexpr std::uint32_t track_child_ordering = 11;
inline constexpr std::uint32_t track_rank = 12;  // sibling_order_rank
inline constexpr std::uint32_t track_merge = 15; // sibling_merge_behavior
inline constexpr std::uint32_t event_annotation = 4;
inline constexpr std::uint32_t event_type = 9;
inline constexpr std::uint32_t event_track = 11;
inline constexpr std::uint32_t event_category = 22;
inline constexpr std::uint32_t event_name = 23;
inline constexpr std::uint32_t event_flows = 47; // flow_ids
inline constexpr std::uint32_t event_correlation = 52;
inline constexpr std::uint32_t event_value = 44; // double_counter_value
inline constexpr std::uint32_t counter_unit = 3;
inline constexpr std::uint32_t counter_unit_name = 6;
inline constexpr std::uint32_t annotation_uint = 3;
inline constexpr std::uint32_t annotation_string = 6;
inline constexpr std::uint32_t annotation_name = 10;
} // namespace field

/// A trace while it is written.
class PerfettoTrace {
public:
    explicit PerfettoTrace(const Timeline& timeline) : timeline_(timeline) {
        const double first = timeline.begin();
        zero_ = first < 0 ? first : 0;
        for (const TimelineValue& value : timeline.values())
            zero_ = value.time < zero_ ? value.time : zero_;
    }

    std::string write() {
        const std::uint64_t root = timeline_.title().empty() ? 0 : add_track(timeline_.title(), 0, 0);
        std::vector<Lanes> rows = rows_in_nanoseconds();
        std::size_t rank = 0;
        for (const Unit& unit : units_of(timeline_)) {
            const std::uint64_t parent = unit.name.empty() ? root : add_track(unit.name, root, rank++);
            std::size_t row_rank = 0;
            for (const std::size_t row : unit.rows)
                add_row(row, parent, unit.name.empty() ? rank++ : row_rank++, rows[row]);
        }
        const std::vector<std::vector<counters::Step>> steps = counters::steps_of(timeline_);
        for (std::size_t i = 0; i < steps.size(); ++i)
            add_counter(timeline_.counters()[i], root, rank++, steps[i]);
        if (const std::string latency = timeline_table::latency_text(timeline_); !latency.empty())
            add_instant(latency, add_track("latency", root, rank++));
        // Kept in order where times are equal, so that on each track an end comes before the next begin.
        std::stable_sort(events_.begin(), events_.end(),
                         [](const Event& a, const Event& b) { return a.time < b.time; });
        for (const Event& event : events_)
            add_event(event);
        return std::move(trace_.bytes);
    }

private:
    struct Event {
        std::uint64_t time; ///< Nanoseconds.
        std::uint64_t track;
        std::size_t batch;
        SpanKind kind;
        bool begins;
        bool counts = false; ///< Not a slice's end, but a counter's value.
        double value = 0;
        std::size_t row = 0;
    };

    double nanoseconds(double microseconds) const {
        double exact = (microseconds - zero_) * 1000; // not below 0
        exact += 0.5;
        return static_cast<double>(static_cast<std::uint64_t>(exact));
    }

    /// The spans of each row with rounded times: lanes by these do not overlap after rounding.
    std::vector<Lanes> rows_in_nanoseconds() const {
        std::vector<Lanes> rows(timeline_.rows().size());
        for (TimelineSpan span : timeline_.spans()) {
            span.begin = nanoseconds(span.begin);
            span.end = nanoseconds(span.end);
            rows[span.row].spans.push_back({span, 0});
        }
        for (Lanes& row : rows)
            place(row);
        return rows;
    }

    void add_packet(Message&& packet) {
        packet.number(field::packet_sequence, 1);
        trace_.text(field::trace_packet, packet.bytes);
    }

    /// A track that shows what is below it by rank. `parent` is 0 for none.
    /// `counter` are the bytes of a CounterDescriptor, for the track of one.
    std::uint64_t add_track(const std::string& name, std::uint64_t parent, std::size_t rank,
                            const std::string* counter = nullptr) {
        // Ids are global in a trace, which may be joined with others: they begin at "sluice" in ASCII.
        const std::uint64_t uuid = 0x736C'7569'6365'0000 + ++tracks_;
        Message track;
        track.number(field::track_uuid, uuid);
        track.text(field::track_name, clean_text(name));
        if (parent != 0)
            track.number(field::track_parent, parent);
        if (counter != nullptr)
            track.text(field::track_counter, *counter);
        track.number(field::track_child_ordering, 3); // EXPLICIT
        track.number(field::track_rank, rank);
        track.number(field::track_merge, 2); // NONE: tracks of one name stay apart
        Message packet;
        if (tracks_ == 1)
            packet.number(field::packet_sequence_flags, 1); // SEQ_INCREMENTAL_STATE_CLEARED
        packet.text(field::packet_track_descriptor, track.bytes);
        add_packet(std::move(packet));
        return uuid;
    }

    void add_row(std::size_t number, std::uint64_t parent, std::size_t rank, const Lanes& row) {
        const std::string& name = timeline_.rows()[number].name;
        std::vector<std::uint64_t> tracks{add_track(name, parent, rank)};
        for (std::size_t lane = 1; lane < row.count; ++lane)
            tracks.push_back(add_track(name + " (" + std::to_string(lane + 1) + ")", tracks[0], lane));
        for (const Placed& placed : row.spans) {
            const TimelineSpan& span = placed.span;
            const std::uint64_t track = tracks[placed.lane];
            events_.push_back({static_cast<std::uint64_t>(span.begin), track, span.batch, span.kind, true,
                               false, 0, number});
            events_.push_back({static_cast<std::uint64_t>(span.end), track, span.batch, span.kind, false});
        }
    }

    void add_counter(const TimelineCounter& counter, std::uint64_t parent, std::size_t rank,
                     const std::vector<counters::Step>& steps) {
        Message descriptor;
        if (counter.unit == "B")
            descriptor.number(field::counter_unit, 3); // UNIT_SIZE_BYTES
        else
            descriptor.text(field::counter_unit_name, clean_text(counter.unit));
        const std::uint64_t track = add_track(counter.name, parent, rank, &descriptor.bytes);
        for (const counters::Step& step : steps) {
            const auto time = static_cast<std::uint64_t>(nanoseconds(step.time));
            events_.push_back({time, track, 0, SpanKind::compute, false, true, step.value});
        }
    }

    void add_instant(const std::string& name, std::uint64_t track) {
        Message instant;
        instant.number(field::event_type, 3); // TYPE_INSTANT
        instant.number(field::event_track, track);
        instant.text(field::event_name, clean_text(name));
        Message packet;
        packet.number(field::packet_timestamp, static_cast<std::uint64_t>(nanoseconds(timeline_.begin())));
        packet.text(field::packet_track_event, instant.bytes);
        add_packet(std::move(packet));
    }

    void add_event(const Event& event) {
        Message slice;
        // TYPE_COUNTER, TYPE_SLICE_BEGIN, TYPE_SLICE_END
        slice.number(field::event_type, event.counts ? 4 : event.begins ? 1 : 2);
        slice.number(field::event_track, event.track);
        if (event.counts)
            slice.real(field::event_value, event.value);
        if (event.begins) {
            std::string name = "batch " + std::to_string(event.batch);
            if (event.kind != SpanKind::compute)
                name += std::string(" ") + kind_text(event.kind);
            slice.text(field::event_name, name);
            slice.text(field::event_category, kind_text(event.kind));
            slice.number(field::event_correlation, event.batch);
            Message annotation;
            annotation.text(field::annotation_name, "batch");
            annotation.number(field::annotation_uint, event.batch);
            slice.text(field::event_annotation, annotation.bytes);
            add_missing_edges(slice, event);
        }
        Message packet;
        packet.number(field::packet_timestamp, event.time);
        packet.text(field::packet_track_event, slice.bytes);
        add_packet(std::move(packet));
    }

    /// Flows, which are shown as arrows, and what is missing as an argument.
    void add_missing_edges(Message& slice, const Event& event) const {
        if (event.kind == SpanKind::wait)
            return;
        const std::vector<MissingEdge>& edges = timeline_.missing_edges();
        for (std::size_t i = 0; i < edges.size(); ++i) {
            const bool from = edges[i].from_row == event.row && edges[i].from_batch == event.batch;
            const bool to = edges[i].to_row == event.row && edges[i].to_batch == event.batch;
            if (!from && !to)
                continue;
            slice.fixed64(field::event_flows, 0x736C'7569'6365'8000 + i);
            Message annotation;
            annotation.text(field::annotation_name, "missing edge");
            annotation.text(field::annotation_string, clean_text(edges[i].text));
            slice.text(field::event_annotation, annotation.bytes);
        }
    }

    const Timeline& timeline_;
    double zero_ = 0; ///< Microseconds where the trace's time begins.
    Message trace_;
    std::vector<Event> events_;
    std::uint64_t tracks_ = 0;
};

} // namespace sluice::detail::drawing

namespace sluice {

inline std::string to_perfetto(const Timeline& timeline) {
    detail::drawing::check_times("to_perfetto", timeline);
    return detail::drawing::PerfettoTrace(timeline).write();
}

inline void write_perfetto(const Timeline& timeline, const std::string& path) {
    detail::drawing::check_times("write_perfetto", timeline);
    detail::drawing::write_file("write_perfetto", path, detail::drawing::PerfettoTrace(timeline).write());
}

} // namespace sluice

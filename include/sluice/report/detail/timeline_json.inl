// Body of to_json, of timeline_report.hpp.
#pragma once

#include <charconv>

#include <sluice/report/detail/timeline_text.hpp>

namespace sluice {

namespace detail::timeline_json {

/// Writes objects and arrays, one value after another, with the commas between them.
class Writer {
public:
    void open(const char* key, char bracket) {
        name(key);
        text_ += bracket;
    }
    void close(char bracket) { text_ += bracket; }

    void member(const char* key, double value) {
        name(key);
        char digits[32]; // a double's shortest form takes 24
        const std::to_chars_result result = std::to_chars(digits, digits + sizeof digits, value);
        if (value - value == 0)
            text_.append(digits, result.ptr);
        else
            text_ += "null";
    }
    void member(const char* key, std::size_t value) {
        name(key);
        text_ += std::to_string(value);
    }
    void member(const char* key, std::string_view value) {
        name(key);
        string(value);
    }
    /// A value that is no number and no string: `true`, `false` or `null`.
    void word(const char* key, std::string_view value) {
        name(key);
        text_ += value;
    }
    /// A row's number, or null.
    void row(const char* key, std::size_t value) {
        if (value != TimelineReport::no_row)
            return member(key, value);
        word(key, "null");
    }

    std::string text() && { return std::move(text_); }

private:
    /// What stands before a value: a comma, where it is not the first, and its key, where it has one.
    void name(const char* key) {
        if (!text_.empty() && text_.back() != '{' && text_.back() != '[')
            text_ += ',';
        if (key != nullptr) {
            string(key);
            text_ += ':';
        }
    }

    void string(std::string_view value) {
        text_ += '"';
        for (std::size_t at = 0; at < value.size();) {
            const timeline_text::CodePoint point = timeline_text::code_point_at(value, at);
            if (!point.valid) {
                text_ += timeline_text::replacement_text;
            } else if (point.value < 0x20) {
                text_ += "\\u00";
                text_ += point.value < 0x10 ? '0' : '1';
                text_ += "0123456789abcdef"[point.value & 0xF];
            } else {
                if (point.value == '"' || point.value == '\\')
                    text_ += '\\';
                text_ += value.substr(at, point.bytes);
            }
            at += point.bytes;
        }
        text_ += '"';
    }

    std::string text_;
};

inline void add_row(Writer& json, const RowReport& row) {
    json.open(nullptr, '{');
    json.member("name", row.name);
    json.member("unit", row.unit);
    json.member("spans", row.spans);
    json.member("busy_us", row.busy);
    json.member("share", row.share);
    json.member("mean_us", row.mean);
    json.member("median_us", row.median);
    json.member("p99_us", row.p99);
    json.member("shortest_us", row.shortest);
    json.member("longest_us", row.longest);
    json.member("gaps", row.gaps);
    json.member("gap_time_us", row.gap_time);
    json.member("longest_gap_us", row.longest_gap);
    json.member("waits", row.waits);
    json.member("waited_us", row.waited);
    json.close('}');
}

inline void add_counter(Writer& json, const CounterReport& counter) {
    json.open(nullptr, '{');
    json.member("name", counter.name);
    json.member("unit", counter.unit);
    json.member("values", counter.values);
    json.member("lowest", counter.lowest);
    json.member("peak", counter.peak);
    json.member("mean", counter.mean);
    json.close('}');
}

} // namespace detail::timeline_json

inline std::string to_json(const TimelineReport& report) {
    detail::timeline_json::Writer json;
    json.open(nullptr, '{');
    json.member("title", report.title);
    json.member("begin_us", report.begin);
    json.member("end_us", report.end);
    json.member("wall_us", report.wall);
    json.member("batches", report.batches);
    json.member("steady_begin_us", report.steady_begin);
    json.member("steady_end_us", report.steady_end);
    json.member("batches_per_second", report.batches_per_second);
    json.member("busy_share", report.busy_share);
    json.open("device", '{');
    json.member("compute_only", report.device.compute_only);
    json.member("copy_only", report.device.copy_only);
    json.member("both", report.device.both);
    json.member("neither", report.device.neither);
    json.close('}');
    json.member("overlap", report.overlap);
    json.member("serial_sum", report.serial_sum);
    json.row("pace_row", report.pace_row);
    json.row("next_row", report.next_row);
    json.member("sentence", pace_sentence(report));
    json.open("rows", '[');
    for (const RowReport& row : report.rows)
        detail::timeline_json::add_row(json, row);
    json.close(']');
    json.open("counters", '[');
    for (const CounterReport& counter : report.counters)
        detail::timeline_json::add_counter(json, counter);
    json.close(']');
    json.close('}');
    return std::move(json).text();
}

} // namespace sluice

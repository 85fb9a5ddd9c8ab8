// Body of to_json, of timeline_report.hpp.
#pragma once

#include <sluice/report/detail/json_writer.hpp>

namespace sluice {

namespace detail::timeline_json {

inline void add_device(JsonWriter& json, const DeviceShares& device) {
    json.object({{"compute_only", device.compute_only},
                 {"copy_only", device.copy_only},
                 {"both", device.both},
                 {"neither", device.neither}},
                "device");
}

} // namespace detail::timeline_json

inline std::string to_json(const TimelineReport& report) {
    using Json = detail::JsonWriter;
    const auto row_number = [](std::size_t row) {
        return row != TimelineReport::no_row ? Json::Value(row) : Json::Value::null();
    };
    Json json;
    json.open('{');
    json.members({{"title", report.title},
                  {"begin_us", report.begin},
                  {"end_us", report.end},
                  {"wall_us", report.wall},
                  {"batches", report.batches},
                  {"steady_begin_us", report.steady_begin},
                  {"steady_end_us", report.steady_end},
                  {"batches_per_second", report.batches_per_second},
                  {"busy_share", report.busy_share}});
    detail::timeline_json::add_device(json, report.device);
    json.object({{"batches", report.latency.batches},
                 {"median_us", report.latency.median},
                 {"p99_us", report.latency.p99},
                 {"p99_9_us", report.latency.p99_9},
                 {"longest_us", report.latency.longest}},
                "latency");
    json.members({{"overlap", report.overlap},
                  {"serial_sum", report.serial_sum},
                  {"pace_row", row_number(report.pace_row)},
                  {"next_row", row_number(report.next_row)},
                  {"sentence", pace_sentence(report)}});
    json.open('[', "rows");
    for (const RowReport& row : report.rows)
        json.object({{"name", row.name},
                     {"unit", row.unit},
                     {"spans", row.spans},
                     {"busy_us", row.busy},
                     {"share", row.share},
                     {"mean_us", row.mean},
                     {"median_us", row.median},
                     {"p99_us", row.p99},
                     {"shortest_us", row.shortest},
                     {"longest_us", row.longest},
                     {"gaps", row.gaps},
                     {"gap_time_us", row.gap_time},
                     {"longest_gap_us", row.longest_gap},
                     {"waits", row.waits},
                     {"waited_us", row.waited}});
    json.close(']');
    json.open('[', "counters");
    for (const CounterReport& counter : report.counters)
        json.object({{"name", counter.name},
                     {"unit", counter.unit},
                     {"values", counter.values},
                     {"lowest", counter.lowest},
                     {"peak", counter.peak},
                     {"mean", counter.mean}});
    json.close(']');
    json.close('}');
    return std::move(json).text();
}

} // namespace sluice

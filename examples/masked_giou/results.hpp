/// \file
/// What parts have in common: bytes of results, and the runs of the report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <common/report.hpp>
#include <masked_giou/measure.hpp>

namespace masked_giou {

/// Appends the bytes of device memory as they are once `stream` gets there; waits.
template <sluice::Backend B, class T>
void append_bytes(sluice::BasicStreamRef<B> stream, sluice::DeviceSpan<const T, B> values,
                  std::vector<std::byte>& bytes) {
    std::vector<T> host(values.size());
    sluice::copy_and_wait(stream, host, values);
    const auto* begin = reinterpret_cast<const std::byte*>(host.data());
    bytes.insert(bytes.end(), begin, begin + host.size() * sizeof(T));
}

/// The float that the bytes of results begin with.
inline double mean_of(const std::vector<std::byte>& results) {
    float mean = 0;
    std::memcpy(&mean, results.data(), sizeof(mean));
    return static_cast<double>(mean);
}

/// What a run is about, beside how long it took.
struct RunName {
    std::string part;
    std::string variant;
    std::string pass;
};

/// Puts a part's batch and steps into the report, under its own name; the first part's are the report's too.
inline void note_sizes(examples::Report& report, const std::string& part, std::size_t batch,
                       const Plan& plan) {
    const auto images = static_cast<std::int64_t>(batch);
    const auto steps = static_cast<std::int64_t>(plan.steps);
    if (report.batch == 0) {
        report.batch = images;
        report.steps = steps;
    }
    report.extra.emplace_back(part + "_batch", images);
    report.extra.emplace_back(part + "_steps", steps);
}

/// Adds a run for each way that was measured. `value`, such as the mean, is told as first and last loss;
/// `further` is added to each run.
inline void add_runs(examples::Report& report, const RunName& name, const Measured& measured,
                     double value = std::numeric_limits<double>::quiet_NaN(),
                     const examples::ReportValues& further = {}) {
    const auto add = [&](const char* schedule, double microseconds) -> examples::RunResult& {
        examples::RunResult& run = report.runs.emplace_back();
        run.schedule = schedule;
        run.step_microseconds = microseconds;
        run.steps_per_second = 1e6 / microseconds;
        run.loss_first = run.loss_last = value;
        run.extra.emplace_back("part", name.part);
        run.extra.emplace_back("variant", name.variant);
        run.extra.emplace_back("pass", name.pass);
        run.extra.insert(run.extra.end(), further.begin(), further.end());
        return run;
    };
    const auto whole = [](auto number) { return static_cast<std::int64_t>(number); };
    if (const auto& found = measured.one_by_one) {
        examples::RunResult& run = add("serial", found->back_to_back);
        run.identical_to_serial = true;
        run.extra.emplace_back("waiting_microseconds", found->waiting);
        run.extra.emplace_back("host_microseconds", found->host);
    }
    if (const auto& found = measured.graph) {
        examples::RunResult& run = add("graphed", found->back_to_back);
        run.identical_to_serial = measured.same_bits();
        run.extra.emplace_back("nodes", whole(found->nodes));
        run.extra.emplace_back("captures", whole(found->counters.captures));
        run.extra.emplace_back("replays", whole(found->counters.replays));
        run.extra.emplace_back("refusals", whole(found->counters.refusals));
        if (!found->refusal.empty())
            run.extra.emplace_back("refusal", found->refusal);
    }
}

} // namespace masked_giou

// Bodies of pipeline_report.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace sluice {

namespace detail::pipeline_report {

/// Adds spans in the clock's time to a timeline whose zero is `zero`.
struct SpanWriter {
    Timeline& timeline;
    double zero;

    void add(std::size_t row, std::size_t batch, double begin, double end, SpanKind kind) const {
        if (end < zero)
            return;
        timeline.add({row, batch, begin > zero ? begin - zero : 0, end - zero, kind});
    }
};

/// That each stage has an entry in the tables by stage, and each time is one of a stage's, or of all stages'.
inline void require_tables(const PipelineTimes& times) {
    const std::size_t stages = times.stage_names.size();
    const auto require_size = [stages](const char* table, std::size_t size) {
        if (size != stages)
            throw Error(std::string("timeline_of: PipelineTimes::") + table + " has " +
                        detail::counted(size, "entry") + ", and " + detail::there_are(stages, "stage") +
                        "; expected one for each");
    };
    require_size("stage_units", times.stage_units.size());
    if (!times.batches_a_run.empty())
        require_size("batches_a_run", times.batches_a_run.size());
    for (const StageTime& time : times.stages) {
        if (time.stage > stages || stages == 0)
            throw Error("timeline_of: PipelineTimes::stages has a time of stage " +
                        std::to_string(time.stage) + ", and " + detail::there_are(stages, "stage") +
                        "; expected one of them, or their number for a graph of all");
    }
}

inline std::string why_eager(const GraphCounters& counters) {
    const EagerRuns& eager = counters.eager;
    struct {
        std::uint64_t runs;
        const char* why;
    } const reasons[] = {
        {eager.ends, "a flush, a finish or a wait for a batch came before the step was whole; "
                     "graph_each_stage has no such steps"},
        {eager.first_runs, "their batches were new"},
        {eager.no_place, "GraphOptions::capacity has no place for their graphs"},
        {eager.refused, "their captures were refused"},
        {eager.changed_slots, "a stage changes its slot on the host"},
        {eager.untold, "their batches cannot be told apart"},
        {eager.blocking, "launch_blocking is set"},
    };
    std::uint64_t runs = 0;
    const auto* most = &reasons[0];
    for (const auto& reason : reasons) {
        runs += reason.runs;
        most = reason.runs > most->runs ? &reason : most;
    }
    if (runs < 32 || runs < counters.replays)
        return {};
    return "Of " + std::to_string(runs + counters.replays) + " runs " + std::to_string(runs) +
           " launched no graph: of " + std::to_string(most->runs) + ' ' + most->why + '.';
}

/// Which batch of the pipeline each fill was for, or `unknown`. The source counts from its own 0, those that it has dropped as well,
/// and the pipeline from its own: the last one that was given is the last that was submitted.
inline constexpr std::size_t unknown = static_cast<std::size_t>(-1);
inline std::vector<std::size_t> batches_of_fills(const PipelineTimes& times) {
    std::size_t given = 0;
    for (const FillTime& fill : times.fills)
        given = fill.given > 0 ? fill.batch : given;
    std::size_t left = 1 + (times.submitted > 0     ? times.submitted - 1
                            : times.submits.empty() ? given
                                                    : times.submits.back().batch);
    std::vector<std::size_t> batches(times.fills.size(), unknown);
    for (std::size_t i = times.fills.size(); i > 0 && left > 0; --i) {
        if (times.fills[i - 1].given > 0)
            batches[i - 1] = --left;
    }
    return batches;
}

inline void note_pace(PipelineTimes& times) {
    std::size_t waiting = 0; // behind the last one that was given
    for (const FillTime& fill : times.fills) {
        ++times.sent;
        ++waiting;
        if (fill.given > 0) {
            times.dropped += waiting - 1;
            waiting = 0;
        }
    }
    times.sent -= waiting;
    if (times.fills.size() > 1 && times.fills.back().batch > times.fills.front().batch)
        times.pace = (times.fills.back().end - times.fills.front().end) /
                     static_cast<double>(times.fills.back().batch - times.fills.front().batch);
}

/// How long each batch took of which it is known when it was submitted and when each stage was done with it that runs for every
/// batch: until the last one that ran for it. One that runs for several runs for the last of them.
inline std::vector<double> latencies_of(const PipelineTimes& times) {
    const auto runs_always = [&](std::size_t stage) {
        return times.batches_a_run.empty() || times.batches_a_run[stage] == 1;
    };
    std::size_t wanted = 0;
    for (std::size_t stage = 0; stage < times.stage_names.size(); ++stage)
        wanted += runs_always(stage) ? 1U : 0U;
    std::vector<StageTime> works;
    for (const StageTime& time : times.stages) {
        if (time.stage < times.stage_names.size())
            works.push_back(time);
    }
    std::sort(works.begin(), works.end(),
              [](const StageTime& a, const StageTime& b) { return a.batch < b.batch; });
    std::vector<double> latencies;
    std::size_t at = 0;
    for (const StageTime& submit : times.submits) {
        while (at < works.size() && works[at].batch < submit.batch)
            ++at;
        std::size_t found = 0;
        double end = 0;
        for (; at < works.size() && works[at].batch == submit.batch; ++at) {
            found += runs_always(works[at].stage) ? 1U : 0U;
            end = works[at].end > end ? works[at].end : end;
        }
        if (found == wanted)
            latencies.push_back(end - (submit.made > 0 ? submit.made : submit.begin));
    }
    return latencies;
}

inline void keep_noted_fills(PipelineTimes& times) {
    if (times.submits.empty())
        return;
    const std::vector<std::size_t> batches = batches_of_fills(times);
    const std::size_t first = times.submits.front().batch, last = times.submits.back().batch;
    std::vector<FillTime> noted;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        if (batches[i] != unknown && batches[i] >= first && batches[i] <= last)
            noted.push_back(times.fills[i]);
    }
    if (!noted.empty())
        times.fills = std::move(noted);
}

inline void add_source(const PipelineTimes& times, std::size_t first, std::size_t submit_row,
                       const SpanWriter& spans) {
    std::vector<std::size_t> rows;
    rows.reserve(times.workers > 0 ? static_cast<std::size_t>(times.workers) : 0);
    for (int worker = 0; worker < times.workers; ++worker)
        rows.push_back(spans.timeline.add_row("source " + std::to_string(worker), "CPU"));
    const std::vector<std::size_t> batches = batches_of_fills(times);
    for (std::size_t i = 0; i < batches.size(); ++i) {
        const std::size_t batch = batches[i];
        if (batch == unknown || batch < first)
            continue;
        const FillTime& fill = times.fills[i];
        const auto worker = static_cast<std::size_t>(fill.worker);
        const bool by_caller = worker >= rows.size();
        if (!by_caller)
            spans.add(rows[worker], batch, fill.claimed, fill.begin, SpanKind::wait);
        spans.add(by_caller ? submit_row : rows[worker], batch, fill.begin, fill.end, SpanKind::source);
        if (fill.given > 0 && !by_caller)
            spans.add(submit_row, batch, fill.asked, fill.given, SpanKind::wait);
    }
}

} // namespace detail::pipeline_report

inline Timeline timeline_of(const PipelineTimes& times, std::string title) {
    detail::pipeline_report::require_tables(times);
    detail::bound::require_finite(times, "timeline_of");
    Timeline timeline(std::move(title));
    for (std::size_t stage = 0; stage < times.stage_names.size(); ++stage)
        timeline.add_row(times.stage_names[stage], times.stage_units[stage]);
    if (times.stages.empty())
        return timeline;
    // Of graphs of whole steps the stages within, where these are known.
    const bool inside = detail::bound::within_graphs(times);
    const auto shown = [&](const StageTime& time) {
        return !inside || time.stage != times.stage_names.size();
    };
    detail::pipeline_report::SpanWriter spans{timeline, (std::numeric_limits<double>::max)()};
    std::size_t first = detail::pipeline_report::unknown;
    for (const StageTime& time : times.stages) {
        if (!shown(time))
            continue;
        spans.zero = time.begin < spans.zero ? time.begin : spans.zero;
        first = time.batch < first ? time.batch : first;
    }
    timeline.set_clock_zero(spans.zero);
    for (const StageTime& time : times.stages) {
        if (!shown(time))
            continue;
        if (time.stage == times.stage_names.size() && timeline.rows().size() == times.stage_names.size())
            timeline.add_row("graphs", times.stage_units.front());
        spans.add(time.stage, time.batch, time.begin, time.end, SpanKind::compute);
    }
    const std::size_t submit_row = timeline.add_row("submit", "CPU");
    for (const StageTime& time : times.submits) {
        if (time.batch < first)
            continue;
        // Where in the call it waited is not known.
        spans.add(submit_row, time.batch, time.begin, time.end - time.waited, SpanKind::source);
        if (time.waited > 0)
            spans.add(submit_row, time.batch, time.end - time.waited, time.end, SpanKind::wait);
    }
    if (!times.fills.empty())
        detail::pipeline_report::add_source(times, first, submit_row, spans);
    for (const MissingEdge& edge : times.missing_edges)
        timeline.add_missing_edge(edge);
    timeline.set_sentence(bound_of(times).sentence + (times.eager.empty() ? "" : ' ' + times.eager) +
                          (times.shares.empty() ? "" : ' ' + times.shares));
    timeline.set_latencies(detail::pipeline_report::latencies_of(times));
    return timeline;
}

inline TimelineReport report_of(const PipelineTimes& times, std::string title) {
    return report_of(timeline_of(times, std::move(title)));
}

} // namespace sluice

// What the checker has found between a pipeline's stages, for its report.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/backend/findings.hpp>
#include <sluice/report/bound.hpp>

namespace sluice::detail::pipeline_report {

inline bool is_noted(const PipelineTimes& times, std::size_t stage, std::size_t batch) {
    for (const StageTime& time : times.stages) {
        if (time.stage == stage && time.batch == batch)
            return true;
    }
    return false;
}

/// Those of races between two of the stages: of the batches at which each was met first, and last, or, where neither was noted
/// and it was met more than once, of the first noted batches that are as far apart.
inline std::vector<MissingEdge> missing_edges(const PipelineTimes& times,
                                              const std::vector<sluice::checked::Finding>& findings) {
    const std::vector<std::string>& stages = times.stage_names;
    std::vector<MissingEdge> edges;
    for (const sluice::checked::Finding& finding : findings) {
        if (finding.mistake != sluice::checked::Mistake::race || !finding.first.batch ||
            !finding.second.batch)
            continue;
        std::size_t from = 0, to = 0;
        while (from < stages.size() && stages[from] != finding.first.stage)
            ++from;
        while (to < stages.size() && stages[to] != finding.second.stage)
            ++to;
        if (from == stages.size() || to == stages.size())
            continue;
        bool noted = false;
        const auto add = [&](std::size_t first, std::size_t second) {
            noted = noted || (is_noted(times, from, first) && is_noted(times, to, second));
            edges.push_back({from, first, to, second, finding.message});
        };
        const std::size_t first = *finding.first.batch, second = *finding.second.batch;
        add(first, second);
        if (finding.count == 1)
            continue;
        add(finding.first.latest_batch.value_or(first), finding.second.latest_batch.value_or(second));
        for (std::size_t i = 0; !noted && i < times.stages.size(); ++i) {
            const std::size_t batch = times.stages[i].batch;
            if (times.stages[i].stage == from && batch + second >= first &&
                is_noted(times, to, batch + second - first))
                add(batch, batch + second - first);
        }
    }
    return edges;
}

/// What has been found, of a pipeline of a checked backend.
template <class B>
void add_missing_edges([[maybe_unused]] PipelineTimes& times) {
    if constexpr (IsChecked<B>::value)
        times.missing_edges = missing_edges(times, B::findings());
}

} // namespace sluice::detail::pipeline_report

// What bounds a pipeline, by the rules of bound.hpp once more, without its care for time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <sluice/report/bound.hpp>
#include <sluice/report/pipeline_report.hpp>

namespace report_bound_random {

using namespace sluice;
using detail::bound::rate_text;
using detail::bound::time_text;

/// A stage's notes, or those of graphs.
struct Work {
    std::size_t count = 0;
    double sum = 0, share = 0, period = 0;
};

inline Work work_of(const PipelineTimes& times, std::size_t stage) {
    std::map<std::size_t, StageTime> own; // here a later batch begins later
    for (const StageTime& time : times.stages) {
        if (time.stage == stage)
            own[time.batch] = time;
    }
    Work work;
    work.count = own.size();
    if (own.empty())
        return work;
    double busy = 0, end = own.begin()->second.begin;
    for (const auto& [batch, time] : own) {
        work.sum += time.end - time.begin;
        busy += std::max(time.end - std::max(end, time.begin), 0.0);
        end = std::max(end, time.end);
    }
    const StageTime &first = own.begin()->second, &last = own.rbegin()->second;
    work.share = end > first.begin ? busy / (end - first.begin) : 0;
    if (own.size() > 1)
        work.period = (last.end - first.end) / static_cast<double>(last.batch - first.batch);
    return work;
}

inline double later_middle(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

/// The rules of bound.hpp, applied to `times`.
struct Rules {
    explicit Rules(const PipelineTimes& of) : times(of), stages(of.stage_names.size()) {}

    Bound bound() {
        measure_stages();
        measure_calls();
        measure_sleep();
        if (times.submits.size() < 4 || times.stages.size() < 2 || result.period == 0) {
            text = "too few batches were noted to say what bounds this.";
            return result;
        }
        look_at_delays();
        compare();
        say();
        if (times.dropped > 0 && times.pace > 0)
            text += " The source sends " + rate_text(times.pace) + "; " + std::to_string(times.dropped) +
                    " of 9 were dropped.";
        return result;
    }

    void measure_stages() {
        std::size_t noted = 0;
        for (std::size_t stage = 0; stage <= stages; ++stage) {
            works.push_back(work_of(times, stage));
            result.period = std::max(result.period, works[stage].period);
            noted = stage < stages ? std::max(noted, works[stage].count) : noted;
        }
        for (std::size_t stage = 0; stage <= stages; ++stage) {
            const double of = static_cast<double>(stage < stages ? noted : works[stage].count);
            means.push_back(works[stage].count == 0 ? 0 : works[stage].sum / of);
            if (stage < stages) {
                result.together += means[stage];
                slowest = means[stage] > means[slowest] ? stage : slowest;
            }
        }
        result.longest = means[slowest];
    }

    void measure_calls() {
        const std::vector<StageTime>& submits = times.submits;
        const auto calls = static_cast<double>(submits.size());
        if (submits.size() > 1)
            result.period =
                std::max(result.period, (submits.back().begin - submits.front().begin) / (calls - 1));
        double length = 0;
        for (const StageTime& submit : submits) {
            length += submit.end - submit.begin;
            result.held += submit.waited / calls;
            result.reading += submit.reading / calls;
            result.results += submit.results / calls;
        }
        result.submit = submits.empty() ? 0 : length / calls - result.held;
        double given = 0;
        for (const FillTime& fill : times.fills) {
            result.fill += (fill.end - fill.begin) / static_cast<double>(times.fills.size());
            given += fill.given > 0;
            result.waited += fill.given - fill.asked;
        }
        result.waited = given > 0 ? result.waited / given : 0;
    }

    void measure_sleep() {
        const std::vector<StageTime>& submits = times.submits;
        double elapsed = 0, used = 0, pairs = 0;
        for (std::size_t i = 0; i + 1 < submits.size(); ++i) {
            if (submits[i + 1].batch - submits[i].batch == 1 && submits[i].used > 0 &&
                submits[i + 1].used >= submits[i].used) {
                elapsed += submits[i + 1].end - submits[i].end;
                used += submits[i + 1].used - submits[i].used;
                ++pairs;
            }
        }
        if (pairs > 0)
            result.asleep = std::max(0.0, (elapsed - used) / pairs - result.held - result.waited -
                                              result.reading - result.results);
    }

    // Behind: half a period, or graphs that fill 85 % of the time. Trailing: a quarter, and what a launch takes.
    void look_at_delays() {
        std::vector<double> delays, trails;
        for (const StageTime& submit : times.submits) {
            double end = submit.end;
            bool any = false;
            for (const StageTime& time : times.stages) {
                if (time.batch != submit.batch)
                    continue;
                end = std::max(end, time.end);
                if (time.stage == times.stages.front().stage && !any)
                    delays.push_back(time.begin - submit.begin);
                any = any || time.stage == times.stages.front().stage;
            }
            trails.push_back(end - submit.end);
        }
        behind = works[stages].count > 0 ? works[stages].share >= 0.85
                                         : later_middle(delays) > 0.5 * result.period;
        serial = times.schedule == Schedule::serial;
        trailing = serial && later_middle(trails) > 0.25 * result.period + 50;
    }

    void compare() {
        inside = detail::bound::within_graphs(times);
        for (std::size_t stage = 0; stage < (inside ? stages : stages + 1); ++stage)
            busiest = works[stage].share > works[busiest].share ? stage : busiest;
        share = works[busiest].share;
        need = std::max(serial ? result.together : result.longest, result.submit);
        outside = result.period - result.submit - result.held - result.waited - result.results;
        const double filling = times.workers > 0 ? result.fill / (times.workers * result.period) : 0;
        fills = times.workers > 0 ? filling >= 0.85 && filling >= share : result.fill >= 0.5 * result.period;
        of_batch = " of " + time_text(result.period) + " a batch";
        if (result.reading >= 0.1 * result.period)
            reading = " It waits " + time_text(result.reading) + " of " + time_text(result.period) +
                      " for its batch to be read: keep what submit returns and fill several batches in "
                      "turns, or use a Source.";
    }

    void say() {
        if (!times.fills.empty() && fills && result.waited >= (behind ? 0.5 : 0.1) * result.period)
            say_source();
        else if (outside >= 0.6 * result.period && !behind && share < 0.9)
            say_loop();
        else if (result.submit >= 0.6 * result.period && !behind && !trailing &&
                 result.submit >= share * result.period)
            say_submit();
        else if (share >= 0.8)
            say_stage();
        else if (inside && works[stages].share >= 0.8)
            say_barrier();
        else
            say_waiting();
    }

    void say_source() {
        result.part = BoundPart::source;
        if (times.drops) {
            text = "the source sets the pace: it sends " +
                   rate_text(times.pace > 0 ? times.pace : result.period) + ", and the stages need " +
                   time_text(need) + of_batch + ".";
            return;
        }
        text = "the source bounds this: ";
        text += times.workers == 0   ? "the caller fills"
                : times.workers == 1 ? "one worker fills"
                                     : "each of " + std::to_string(times.workers) + " workers fills";
        text += " a batch in " + time_text(result.fill) + ", the stages need " + time_text(need);
        const int workers = need > 0 ? std::min(static_cast<int>(result.fill / need), 63) + 1 : 1;
        if (workers > times.workers) {
            result.workers = workers;
            result.expected = std::max(result.fill / workers, need);
            text += "; with " + std::to_string(workers) + (workers == 1 ? " worker" : " workers") +
                    " expect " + rate_text(result.expected);
        }
        text += ".";
    }

    void say_loop() {
        result.part = BoundPart::loop;
        text = result.asleep >= 0.75 * outside ? "what the loop waits for sets the pace: it sleeps " +
                                                     time_text(result.asleep) + of_batch + "."
                                               : "the loop that submits bounds this: it spends " +
                                                     time_text(outside) + of_batch + " outside of submit.";
        text += reading;
    }

    void say_submit() {
        result.part = BoundPart::submit;
        const double slept = result.asleep - std::max(outside, 0.0);
        if (slept >= 0.5 * result.submit) {
            text = "what a stage calls holds submit up: the caller sleeps there for " + time_text(slept) +
                   of_batch + "; stages overlap where each enqueues its work and does not wait for it.";
            return;
        }
        text = "launches bound this: submit takes " + time_text(result.submit) + of_batch +
               ", the longest stage " + time_text(result.longest) +
               (times.schedule == Schedule::graphed ? "." : "; Schedule::graphed spares most of that.");
    }

    void say_stage() {
        result.part = BoundPart::stage;
        result.stage = busiest;
        text = name(busiest) + " bounds this: it takes " + time_text(means[busiest]) + of_batch;
        std::size_t next = stages;
        for (std::size_t stage = 0; stage < stages; ++stage) {
            if (stage != busiest && works[stage].count > 0 && (next == stages || means[stage] > means[next]))
                next = stage;
        }
        text += (next == stages ? "" : ", " + name(next) + ' ' + time_text(means[next])) + ".";
    }

    void say_barrier() {
        result.part = BoundPart::barrier;
        text = "the steps' graphs bound this: each waits for all stages of the one before, and " +
               name(slowest) + ", the longest stage, works " + time_text(result.longest) + of_batch +
               "; more steps a graph, or a graph for each stage (graph_each_stage), wait less.";
    }

    void say_waiting() {
        result.part = BoundPart::waiting;
        text = "stages wait for one another: together they take " + time_text(result.together) + ", " +
               name(slowest) + " alone " + time_text(result.longest) + ", and a batch comes every " +
               time_text(result.period);
        if (serial) {
            const bool holds = trailing && result.submit >= 0.6 * result.period;
            result.expected = holds ? result.longest : std::max(result.longest, result.submit);
            text += holds ? "; what a stage calls holds submit up for " + time_text(result.submit) +
                                ", as copies from memory that is not pinned do; without that, and"
                          : ";";
            text += " overlapped, expect up to " + rate_text(result.expected);
        }
        text += "." + reading;
    }

    std::string name(std::size_t stage) const {
        return stage == stages ? std::string("the steps' graph")
                               : detail::timeline_text::shortened(times.stage_names[stage], 24);
    }

    const PipelineTimes& times;
    const std::size_t stages;
    Bound result;
    std::string& text = result.sentence;
    std::vector<Work> works;
    std::vector<double> means; // a batch
    std::size_t slowest = 0, busiest = 0;
    bool behind = false, serial = false, trailing = false, inside = false, fills = false;
    double share = 0, need = 0, outside = 0;
    std::string of_batch, reading;
};

} // namespace report_bound_random

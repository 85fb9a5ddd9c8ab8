// Bodies of bound.hpp.
#pragma once

#include <algorithm>
#include <utility>

#include <sluice/report/detail/finite_times.inl>
#include <sluice/report/detail/numbers.hpp>
#include <sluice/report/detail/timeline_text.hpp>

namespace sluice {

namespace detail::bound {

/// The work of one stage.
struct StageWork {
    double mean = 0;  ///< Microseconds a batch, also of a stage that runs once for several.
    double share = 0; ///< Of the time from the first begin to the last end in which it was at work.
    double period = 0;
    std::size_t count = 0;
};

/// Batches that were noted: stages that run once for several have fewer notes than others.
inline std::size_t noted_batches(const PipelineTimes& times) {
    std::vector<std::size_t> counts(times.stage_names.size() + 1, 0);
    for (const StageTime& time : times.stages) {
        if (time.stage < times.stage_names.size())
            ++counts[time.stage];
    }
    return *std::max_element(counts.begin(), counts.end());
}

inline StageWork work_of(const std::vector<StageTime>& times, std::size_t stage, std::size_t batches_noted) {
    StageWork work;
    std::vector<StageTime> own;
    for (const StageTime& time : times) {
        if (time.stage == stage)
            own.push_back(time);
    }
    work.count = own.size();
    if (own.empty())
        return work;
    std::sort(own.begin(), own.end(),
              [](const StageTime& a, const StageTime& b) { return a.begin < b.begin; });
    double busy = 0, reach = own.front().begin, sum = 0;
    for (const StageTime& time : own) {
        sum += time.end - time.begin;
        const double from = time.begin > reach ? time.begin : reach;
        busy += time.end > from ? time.end - from : 0;
        reach = time.end > reach ? time.end : reach;
    }
    const double wall = reach - own.front().begin;
    work.mean = sum / static_cast<double>(batches_noted > own.size() ? batches_noted : own.size());
    work.share = wall > 0 ? busy / wall : 0;
    const std::size_t batches =
        own.back().batch - own.front().batch; // a graph of several steps is one piece of work
    if (own.back().batch > own.front().batch)
        work.period = (own.back().end - own.front().end) / static_cast<double>(batches);
    return work;
}

inline std::string time_text(double microseconds) {
    const numbers::TimeUnit unit = numbers::unit_for(microseconds);
    const double value = microseconds / unit.microseconds;
    return numbers::fixed(value, value < 9.95 ? 1 : 0) + ' ' + unit.name;
}
/// Batches per second, with a comma after the thousands.
inline std::string rate_text(double period) {
    const double rate = 1e6 / period;
    std::string digits = numbers::fixed(rate, rate < 99.5 ? 1 : 0);
    const std::size_t point = digits.find('.') == std::string::npos ? digits.size() : digits.find('.');
    for (std::size_t at = point; at > 3; at -= 3)
        digits.insert(at - 3, 1, ',');
    return digits + " batches/s";
}

/// The means over the noted batches.
struct Means {
    std::vector<StageWork> stages; ///< The last one is of graphs of whole steps.
    Bound bound;
    bool behind = false; ///< Whether the stages have not kept up with the submission.
    bool trails = false; ///< Whether serial stages end long after their submission.
    double filling = 0;  ///< Share of the time in which the workers fill.
    std::size_t slowest = 0;
};

inline double mean_length(const std::vector<StageTime>& times) {
    double sum = 0;
    for (const StageTime& time : times)
        sum += time.end - time.begin;
    return times.empty() ? 0 : sum / static_cast<double>(times.size());
}

/// The value in the middle, or the later one of two; 0 of none.
inline double median_of(std::vector<double> values) {
    if (values.empty())
        return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// How long the first stage comes after the submission of its batch: the middle one.
inline double median_delay(const PipelineTimes& times) {
    std::vector<double> delays;
    for (const StageTime& submit : times.submits) {
        for (const StageTime& time : times.stages) {
            if (time.batch != submit.batch || time.stage != times.stages.front().stage)
                continue;
            delays.push_back(time.begin - submit.begin);
            break;
        }
    }
    return median_of(std::move(delays));
}

/// How long the last stage of a batch ends after its submission: the middle one.
inline double median_trail(const PipelineTimes& times) {
    std::vector<double> trails;
    for (const StageTime& submit : times.submits) {
        double last = submit.end;
        for (const StageTime& time : times.stages)
            last = time.batch == submit.batch && time.end > last ? time.end : last;
        trails.push_back(last - submit.end);
    }
    return median_of(std::move(trails));
}

/// How long the calling thread used no CPU in a batch's time, without what is known of that.
inline double asleep(const std::vector<StageTime>& submits, const Bound& bound) {
    double used = 0, elapsed = 0;
    std::size_t periods = 0;
    for (std::size_t i = 1; i < submits.size(); ++i) {
        const StageTime& former = submits[i - 1];
        if (submits[i].batch != former.batch + 1 || former.used <= 0 || submits[i].used < former.used)
            continue;
        used += submits[i].used - former.used;
        elapsed += submits[i].end - former.end;
        ++periods;
    }
    if (periods == 0)
        return 0;
    const double idle = (elapsed - used) / static_cast<double>(periods) - bound.held - bound.waited -
                        bound.reading - bound.results;
    return idle > 0 ? idle : 0;
}

inline Means means_of(const PipelineTimes& times) {
    Means means;
    Bound& bound = means.bound;
    const std::size_t batches_noted = noted_batches(times);
    for (std::size_t stage = 0; stage <= times.stage_names.size(); ++stage) {
        const StageWork work =
            work_of(times.stages, stage, stage < times.stage_names.size() ? batches_noted : 0);
        means.stages.push_back(work);
        bound.period = work.period > bound.period ? work.period : bound.period;
        bound.together += stage < times.stage_names.size() ? work.mean : 0;
        if (stage < times.stage_names.size() && work.mean > bound.longest) {
            bound.longest = work.mean;
            means.slowest = stage;
        }
    }
    const std::vector<StageTime>& submits = times.submits;
    if (submits.size() > 1) {
        const double spacing =
            (submits.back().begin - submits.front().begin) / static_cast<double>(submits.size() - 1);
        bound.period = spacing > bound.period ? spacing : bound.period;
    }
    bound.submit = mean_length(submits);
    for (const StageTime& submit : submits) {
        bound.held += submit.waited / static_cast<double>(submits.size());
        bound.reading += submit.reading / static_cast<double>(submits.size());
        bound.results += submit.results / static_cast<double>(submits.size());
    }
    bound.submit -= bound.held;
    std::size_t given = 0;
    for (const FillTime& fill : times.fills) {
        bound.fill += (fill.end - fill.begin) / static_cast<double>(times.fills.size());
        if (fill.given > 0) {
            ++given;
            bound.waited += fill.given - fill.asked;
        }
    }
    bound.waited = given > 0 ? bound.waited / static_cast<double>(given) : 0;
    bound.asleep = asleep(submits, bound);
    if (times.workers > 0 && bound.period > 0)
        means.filling = bound.fill / (times.workers * bound.period);
    // A graph of several steps begins when the last of them has been submitted: it says so by being always at work.
    const StageWork& graphs = means.stages.back();
    means.behind = graphs.count > 0 ? graphs.share >= 0.85 : median_delay(times) > 0.5 * bound.period;
    // The last launch itself takes the device tens of microseconds.
    constexpr double launch = 50;
    means.trails = times.schedule == Schedule::serial && median_trail(times) > 0.25 * bound.period + launch;
    return means;
}

/// What the stages need of a batch's time where nothing else bounds it.
inline double needed(const PipelineTimes& times, const Bound& bound) {
    const double stages = times.schedule == Schedule::serial ? bound.together : bound.longest;
    return stages > bound.submit ? stages : bound.submit;
}

inline void say_source(const PipelineTimes& times, Bound& bound) {
    const double need = needed(times, bound);
    const double all = need > 0 ? bound.fill / need : 0;
    bound.sentence = "the source bounds this: ";
    if (times.workers == 0)
        bound.sentence += "the caller fills a batch in " + time_text(bound.fill);
    else
        bound.sentence +=
            (times.workers == 1 ? "one worker fills"
                                : "each of " + std::to_string(times.workers) + " workers fills") +
            std::string(" a batch in ") + time_text(bound.fill);
    bound.sentence += ", the stages need " + time_text(need);
    const int workers = static_cast<int>(all < 63 ? all : 63) + 1;
    if (workers > times.workers) {
        bound.workers = workers;
        const double fill = bound.fill / workers;
        bound.expected = fill > need ? fill : need;
        bound.sentence += "; with " + counted(workers, "worker") + " expect " + rate_text(bound.expected);
    }
    bound.sentence += '.';
}

/// The same where something else sets the source's pace: more workers would not help.
inline void say_paced_source(const PipelineTimes& times, Bound& bound) {
    bound.sentence = "the source sets the pace: it sends " +
                     rate_text(times.pace > 0 ? times.pace : bound.period) + ", and the stages need " +
                     time_text(needed(times, bound)) + " of " + time_text(bound.period) + " a batch.";
}

inline void say_loop(double outside, Bound& bound) {
    if (bound.asleep >= 0.75 * outside) {
        bound.sentence = "what the loop waits for sets the pace: it sleeps " + time_text(bound.asleep) +
                         " of " + time_text(bound.period) + " a batch.";
        return;
    }
    bound.sentence = "the loop that submits bounds this: it spends " + time_text(outside) + " of " +
                     time_text(bound.period) + " a batch outside of submit.";
}

/// `outside`: of submit, where the caller may have slept as well.
inline void say_submit(const PipelineTimes& times, double outside, Bound& bound) {
    const double slept = bound.asleep - (outside > 0 ? outside : 0);
    if (slept >= 0.5 * bound.submit) {
        bound.sentence = "what a stage calls holds submit up: the caller sleeps there for " +
                         time_text(slept) + " of " + time_text(bound.period) +
                         " a batch; stages overlap where each enqueues its work and does not wait for it.";
        return;
    }
    bound.sentence = "launches bound this: submit takes " + time_text(bound.submit) + " of " +
                     time_text(bound.period) + " a batch, the longest stage " + time_text(bound.longest);
    if (times.schedule != Schedule::graphed)
        bound.sentence += "; Schedule::graphed spares most of that";
    bound.sentence += '.';
}

inline void say_stage(const PipelineTimes& times, const Means& means, Bound& bound) {
    const auto name = [&](std::size_t stage) {
        return stage < times.stage_names.size() ? timeline_text::shortened(times.stage_names[stage], 24)
                                                : std::string("the steps' graph");
    };
    bound.sentence = name(bound.stage) + " bounds this: it takes " +
                     time_text(means.stages[bound.stage].mean) + " of " + time_text(bound.period) +
                     " a batch";
    std::size_t next = times.stage_names.size();
    for (std::size_t stage = 0; stage < times.stage_names.size(); ++stage) {
        if (stage != bound.stage && means.stages[stage].count > 0 &&
            (next == times.stage_names.size() || means.stages[stage].mean > means.stages[next].mean))
            next = stage;
    }
    if (next < times.stage_names.size())
        bound.sentence += ", " + name(next) + ' ' + time_text(means.stages[next].mean);
    bound.sentence += '.';
}

/// Whether it is known when stages worked within graphs of whole steps: the latest graph has some within.
inline bool within_graphs(const PipelineTimes& times) {
    const StageTime* graph = nullptr;
    for (const StageTime& time : times.stages) {
        if (time.stage == times.stage_names.size() && (graph == nullptr || time.end > graph->end))
            graph = &time;
    }
    for (const StageTime& time : times.stages) {
        const double middle = (time.begin + time.end) / 2;
        if (graph != nullptr && time.stage < times.stage_names.size() && middle > graph->begin &&
            middle < graph->end)
            return true;
    }
    return false;
}

inline void say_barrier(const PipelineTimes& times, const Means& means, Bound& bound) {
    bound.sentence = "the steps' graphs bound this: each waits for all stages of the one before, and " +
                     timeline_text::shortened(times.stage_names[means.slowest], 24) +
                     ", the longest stage, works " + time_text(bound.longest) + " of " +
                     time_text(bound.period) +
                     " a batch; more steps a graph, or a graph for each stage (graph_each_stage), wait less.";
}

inline void say_waiting(const PipelineTimes& times, const Means& means, Bound& bound) {
    bound.sentence = "stages wait for one another: together they take " + time_text(bound.together) + ", " +
                     timeline_text::shortened(times.stage_names[means.slowest], 24) + " alone " +
                     time_text(bound.longest) + ", and a batch comes every " + time_text(bound.period);
    if (times.schedule == Schedule::serial) {
        // The caller is in submit though the stages have what they need: something there waits for them.
        const bool held = means.trails && bound.submit >= 0.6 * bound.period;
        bound.expected = held || bound.longest > bound.submit ? bound.longest : bound.submit;
        if (held)
            bound.sentence += "; what a stage calls holds submit up for " + time_text(bound.submit) +
                              ", as copies from memory that is not pinned do; without that, and";
        else
            bound.sentence += ';';
        bound.sentence += " overlapped, expect up to " + rate_text(bound.expected);
    }
    bound.sentence += '.';
}

/// Where the loop waits for its batches to be read a tenth of the time or more: that, and what to do.
inline std::string reading_text(const Bound& bound) {
    if (bound.reading < 0.1 * bound.period)
        return {};
    return " It waits " + time_text(bound.reading) + " of " + time_text(bound.period) +
           " for its batch to be read: keep what submit returns and fill several batches in turns, or use a "
           "Source.";
}

} // namespace detail::bound

inline Bound bound_of(const PipelineTimes& times) {
    namespace parts = detail::bound;
    parts::require_finite(times, "bound_of");
    parts::Means means = parts::means_of(times);
    Bound& bound = means.bound;
    if (times.submits.size() < 4 || times.stages.size() < 2 || bound.period <= 0) {
        bound.sentence = "too few batches were noted to say what bounds this.";
        return bound;
    }
    const bool behind = means.behind;
    const double outside = bound.period - bound.submit - bound.held - bound.waited - bound.results;
    // Graphs of whole steps stand for their stages where these are not known.
    const bool inside = parts::within_graphs(times);
    std::size_t busiest = 0;
    for (std::size_t stage = 0; stage + (inside ? 1 : 0) < means.stages.size(); ++stage) {
        if (means.stages[stage].share > means.stages[busiest].share)
            busiest = stage;
    }
    const bool fills = times.workers == 0
                           ? bound.fill >= 0.5 * bound.period
                           : means.filling >= 0.85 && means.filling >= means.stages[busiest].share;
    // Workers that are done at the same time hand over several batches at once, of which the last ones are behind.
    if (!times.fills.empty() && fills && bound.waited >= (behind ? 0.5 : 0.1) * bound.period) {
        bound.part = BoundPart::source;
        times.drops ? parts::say_paced_source(times, bound) : parts::say_source(times, bound);
    } else if (outside >= 0.6 * bound.period && !behind && means.stages[busiest].share < 0.9) {
        bound.part = BoundPart::loop;
        parts::say_loop(outside, bound);
        bound.sentence += parts::reading_text(bound);
    } else if (bound.submit >= 0.6 * bound.period && !behind && !means.trails &&
               bound.submit >= means.stages[busiest].share * bound.period) {
        bound.part = BoundPart::submit;
        parts::say_submit(times, outside, bound);
    } else if (means.stages[busiest].share >= 0.8) {
        bound.part = BoundPart::stage;
        bound.stage = busiest;
        parts::say_stage(times, means, bound);
    } else if (inside && means.stages.back().share >= 0.8) {
        bound.part = BoundPart::barrier;
        parts::say_barrier(times, means, bound);
    } else {
        bound.part = BoundPart::waiting;
        parts::say_waiting(times, means, bound);
        bound.sentence += parts::reading_text(bound);
    }
    if (times.dropped > 0 && times.pace > 0)
        bound.sentence += " The source sends " + parts::rate_text(times.pace) + "; " +
                          std::to_string(times.dropped) + " of " + std::to_string(times.sent) +
                          " were dropped.";
    return bound;
}

} // namespace sluice

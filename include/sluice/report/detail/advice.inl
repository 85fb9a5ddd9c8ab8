// Bodies of advice.hpp.
#pragma once

#include <algorithm>

#include <sluice/report/detail/timeline_text.hpp>
#include <sluice/report/timeline_report.hpp>

namespace sluice {

namespace detail::advice {

inline std::string name_of(Schedule schedule, bool graph_each_stage) {
    return std::string(to_string(schedule)) + (graph_each_stage ? ", a graph a stage" : "");
}
inline std::string name_of(const AdviceTrial& trial) {
    return name_of(trial.schedule, trial.graph_each_stage) + ", " + detail::counted(trial.slots, "slot") +
           ", " + detail::counted(trial.workers, "worker");
}

/// What a trial that has not been run would take, by the parts of those that have.
inline double predicted(const AdviceTrial& trial, const Bound& overlapped, const Bound& serial) {
    const double stages = trial.schedule == Schedule::serial ? serial.together : overlapped.longest;
    // One graph has one launch; a graph a stage has as many as stages, which is little beside their kernels' launches.
    const double launches = trial.schedule == Schedule::graphed ? 0.1 * overlapped.submit : overlapped.submit;
    const double fill = trial.workers == 0 ? 0 : overlapped.fill / trial.workers;
    double longest = stages > launches ? stages : launches;
    longest = longest > fill ? longest : fill;
    // What the caller does by itself comes on top of what it enqueues.
    const double outside = overlapped.period - overlapped.submit - overlapped.held - overlapped.waited;
    const double caller = (outside > 0 ? outside : 0) + launches + (trial.workers == 0 ? overlapped.fill : 0);
    const bool loop =
        overlapped.part == BoundPart::loop || overlapped.part == BoundPart::submit || trial.workers == 0;
    return loop && caller > longest ? caller : longest;
}

inline bool same_way(const AdviceTrial& a, const AdviceTrial& b) {
    return a.schedule == b.schedule && a.graph_each_stage == b.graph_each_stage && a.slots == b.slots &&
           a.workers == b.workers;
}

/// Of those that are within 2 % of the fastest, the one with the fewest graphs, slots and workers.
inline const AdviceTrial& simplest_of_best(const std::vector<AdviceTrial>& trials) {
    double least = 0;
    for (const AdviceTrial& trial : trials) {
        if (trial.measured > 0 && (least <= 0 || trial.measured < least))
            least = trial.measured;
    }
    const auto weight = [](const AdviceTrial& trial) {
        const int graphs = trial.schedule != Schedule::graphed ? 0 : trial.graph_each_stage ? 1 : 2;
        return (graphs * 64 + trial.slots) * 64 + trial.workers;
    };
    const AdviceTrial* best = nullptr;
    for (const AdviceTrial& trial : trials) {
        if (trial.measured > 0 && trial.measured <= 1.02 * least &&
            (best == nullptr || weight(trial) < weight(*best)))
            best = &trial;
    }
    return *best;
}

template <class Run>
void measure(Run& run, AdviceTrial& trial, const AdviceOptions& options) {
    trial.batches = options.batches;
    trial.timed_batches = static_cast<int>(options.batches / 2 < 64 ? options.batches / 2 : 64);
    run(trial);
    if (!(trial.measured > 0))
        throw Error("advise: the function that runs a trial returned without a call of "
                    "trial.measure(pipeline, source)");
}

inline void say(Advice& advice) {
    const AdviceTrial* serial = nullptr;
    for (const AdviceTrial& trial : advice.trials) {
        if (trial.schedule == Schedule::serial && trial.measured > 0 &&
            (serial == nullptr || trial.measured < serial->measured))
            serial = &trial;
    }
    advice.sentence = "use " + name_of(advice.best) + ": " + bound::rate_text(advice.best.measured);
    if (serial != nullptr && serial->measured > 0 && advice.best.schedule != Schedule::serial)
        advice.sentence += ", " + numbers::fixed(serial->measured / advice.best.measured, 2) + " x serial";
    advice.sentence += "; at first " + advice.first.sentence.substr(0, advice.first.sentence.size() - 1) +
                       "; now " + advice.bound.sentence;
}

/// What a stage took for a batch, the middle time; 0 where nothing is noted.
inline double middle_of(const PipelineTimes& times, std::size_t stage) {
    std::vector<double> all;
    for (const StageTime& time : times.stages) {
        if (time.stage == stage)
            all.push_back(time.end - time.begin);
    }
    return bound::median_of(std::move(all));
}

/// `Advice::share`, of runs of the same pipeline: what a stage takes alone is what it takes serially.
inline std::string share_of(const PipelineTimes& overlapped, const PipelineTimes& serial) {
    const int left = overlapped.multiprocessors - overlapped.share_unit;
    if (overlapped.share_unit < 1 || left < 1 || !overlapped.shares.empty())
        return {};
    const std::vector<std::string>& units = overlapped.stage_units;
    double most = 0;
    std::string text;
    for (std::size_t stage = 0; stage < units.size(); ++stage) {
        const double alone = middle_of(serial, stage), beside = middle_of(overlapped, stage);
        std::size_t longest = stage; // on its device
        double takes = 0;
        for (std::size_t other = 0; other < units.size(); ++other) {
            const double time = middle_of(serial, other);
            if (other != stage && units[other] == units[stage] && time > takes) {
                longest = other;
                takes = time;
            }
        }
        // Some more comes of sharing caches, and of events that are noted late.
        if (units[stage] == "CPU" || alone <= 0 || takes < 4 * alone || beside < 3 * alone + 20 ||
            beside - alone <= most)
            continue;
        most = beside - alone;
        text = overlapped.stage_names[stage] + " takes " + bound::time_text(alone) + " alone and " +
               bound::time_text(beside) + " beside " + overlapped.stage_names[longest] +
               "; where its kernels wait for that one's, StageOptions::multiprocessors = " +
               std::to_string(overlapped.share_unit) +
               " gives it some of its own, for a short answer and not for rate: " +
               overlapped.stage_names[longest] + " has " + std::to_string(left) + " of " +
               std::to_string(overlapped.multiprocessors) + " then and takes " +
               numbers::fixed(100.0 * overlapped.share_unit / left, 0) +
               " % longer or more where it fills the device.";
    }
    return text;
}

/// Of two runs from rest to rest, of so many batches in `first` and in `second` microseconds: what filling and emptying the
/// pipeline takes is in both.
inline double time_a_batch(double first, std::size_t shorter, double second, std::size_t longer) {
    return longer > shorter && second > first ? (second - first) / static_cast<double>(longer - shorter)
                                              : second / static_cast<double>(longer);
}

} // namespace detail::advice

template <ReportedPipeline Pipe, class Source>
void AdviceTrial::measure(Pipe& pipeline, Source& source) {
    using Clock = std::chrono::steady_clock;
    const std::size_t warm = batches / 4, middle = warm + (batches - warm) / 3;
    Clock::time_point rest[3];
    for (std::size_t count = 0; count < batches; ++count) {
        if (count == warm || count == middle) {
            pipeline.finish();
            rest[count == middle] = Clock::now();
        }
        auto batch = source.next();
        if (!batch)
            throw Error("advise: the source ended after " + detail::counted(count, "batch") +
                        ", and a trial takes " + std::to_string(batches) +
                        "; give it as many, or AdviceOptions::batches fewer");
        pipeline.submit(batch);
    }
    pipeline.finish();
    rest[2] = Clock::now();
    const std::chrono::duration<double, std::micro> first = rest[1] - rest[0], second = rest[2] - rest[1];
    measured = detail::advice::time_a_batch(first.count(), middle - warm, second.count(), batches - middle);
    times = times_of(pipeline, source);
}

template <class Run>
Advice advise(Run&& run, const AdviceOptions& options) {
    static_assert(std::is_invocable_v<Run&, AdviceTrial&>,
                  "sluice::advise: what runs a trial must be callable as run(AdviceTrial&)");
    namespace parts = detail::advice;
    detail::require_callable("advise: what runs a trial", run);
    if (options.batches < 8)
        throw Error("advise: AdviceOptions::batches is " + std::to_string(options.batches) +
                    "; expected 8 or more");
    if (options.workers < 0 || options.most_workers < options.workers)
        throw Error("advise: AdviceOptions has " + detail::counted(options.workers, "worker") + ", at most " +
                    std::to_string(options.most_workers) + "; expected 0 or more, and no more than at most");
    AdviceTrial overlapped{.workers = options.workers},
        serial{.schedule = Schedule::serial, .workers = options.workers};
    parts::measure(run, overlapped, options);
    parts::measure(run, serial, options);
    Advice advice;
    advice.first = bound_of(overlapped.times);
    const Bound one_by_one = bound_of(serial.times);

    std::vector<int> workers{options.workers};
    if (advice.first.workers > options.workers && options.most_workers > options.workers)
        workers.push_back(advice.first.workers < options.most_workers ? advice.first.workers
                                                                      : options.most_workers);
    for (const int slots : {2, 3}) {
        for (const int fillers : workers) {
            using Way = std::pair<Schedule, bool>; // named, for nvcc 12
            for (const auto& [schedule, each] :
                 {Way{Schedule::serial, false}, Way{Schedule::overlapped, false},
                  Way{Schedule::graphed, true}, Way{Schedule::graphed, false}}) {
                if (schedule == Schedule::graphed && !options.graphs)
                    continue;
                advice.trials.push_back(
                    {.schedule = schedule, .graph_each_stage = each, .slots = slots, .workers = fillers});
                AdviceTrial& trial = advice.trials.back();
                trial.predicted = parts::predicted(trial, advice.first, one_by_one);
                for (const AdviceTrial* known : {&overlapped, &serial}) {
                    if (parts::same_way(trial, *known)) {
                        trial.measured = known->measured;
                        trial.times = known->times;
                    }
                }
            }
        }
    }
    // More workers cost nothing but cores: where they were predicted to help, only they are measured.
    for (AdviceTrial& trial : advice.trials) {
        if (trial.workers == workers.back() && trial.measured <= 0 &&
            (trial.slots == 2 || trial.schedule != Schedule::serial))
            parts::measure(run, trial, options);
    }
    std::stable_sort(advice.trials.begin(), advice.trials.end(),
                     [](const AdviceTrial& a, const AdviceTrial& b) { return a.predicted < b.predicted; });
    advice.best = parts::simplest_of_best(advice.trials);
    advice.bound = bound_of(advice.best.times);
    parts::say(advice);
    advice.share = parts::share_of(overlapped.times, serial.times);
    return advice;
}

inline std::string to_table(const Advice& advice) {
    const auto text = [](double time) { return time > 0 ? detail::bound::time_text(time) : "-"; };
    detail::TextTable table({46}, {12, 12});
    table.add({"way to run it", "predicted", "measured"});
    for (const AdviceTrial& trial : advice.trials)
        table.add({detail::advice::name_of(trial), text(trial.predicted), text(trial.measured)});
    return table.text() + '\n' + detail::timeline_table::wrapped(advice.sentence) + '\n' +
           (advice.share.empty() ? "" : detail::timeline_table::wrapped(advice.share) + '\n');
}

inline std::string to_sentence(const ScheduleChoice& choice) {
    namespace parts = detail::advice;
    std::string text = parts::name_of(choice.schedule, choice.graph_each_stage);
    if (!choice.decided)
        return text + " is being tried: nothing is chosen after " + detail::counted(choice.batches, "batch") +
               " yet.";
    text += " was chosen after " + detail::counted(choice.batches, "batch");
    const char* before = ": ";
    for (const ScheduleTrial& trial : choice.trials) {
        text += before + parts::name_of(trial.schedule, trial.graph_each_stage) + ' ' +
                (trial.refused ? "cannot be used" + (trial.reason.empty() ? "" : " (" + trial.reason + ')')
                 : trial.microseconds > 0 ? detail::bound::time_text(trial.microseconds)
                                          : std::string("was not tried"));
        before = "; ";
    }
    return text + '.';
}

} // namespace sluice

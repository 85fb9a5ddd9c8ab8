/// \file
/// What a rung gave, for people and for the report.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

#include <common/pace.hpp>
#include <common/report.hpp>
#include <resnet18/rungs.hpp>
#include <sluice/report/bound.hpp>
#include <sluice/report/device_activity.hpp>

namespace resnet18 {

/// One rung under one schedule.
struct Summary {
    int rung = 0;
    std::string schedule;
    std::string precision;
    std::size_t batch = 0;
    int workers = 0;
    double samples_per_second = 0;
    examples::Pace pace;
    double at_work_share = 0; ///< of the time, in which a stage was at work on the device, as events noted it
    std::size_t peak_bytes = 0; ///< of device memory, more than before the program's first network
    sluice::Bound bound;
    std::optional<sluice::ActivityReport> kernels; ///< of a run that was recorded by CUPTI
    std::optional<double> alone;                   ///< samples per second on a batch that was there
    std::size_t steps_done = 0;                    ///< warm-up and the steps before a checkpoint included
    std::string weights;                           ///< `hash_of` what was trained
    std::optional<double> held_out_accuracy;
    std::optional<bool> same_bits; ///< whether results have the same bits as serial's, where that ran before
};

/// Prints it, the sentence of what bounds it last.
void print(const Summary& summary, std::ostream& out);

/// Adds it to a run of the report.
void add_to(examples::RunResult& run, const Summary& summary);

} // namespace resnet18

/// \file
/// The experiment from beginning to end, on several GPUs.
#pragma once

#include <common/processes.hpp>
#include <frozen_encoder/data_parallel.hpp>
#include <frozen_encoder/run.hpp>

namespace frozen_encoder::detail {

/// A rank for each of the first `--gpus` devices of this process, or this process's one under mpirun.
template <sluice::Backend B>
std::vector<sluice::Communicator<B>> make_ranks(const Options& options) {
    std::vector<sluice::Communicator<B>> result;
    if (options.processes > 1) {
        result.push_back(examples::make_process_rank<B>());
        return result;
    }
    if (options.gpus > B::device_count()) {
        throw examples::BadInput("--gpus: expected at most the " + std::to_string(B::device_count()) +
                                 " devices that there are, not " + std::to_string(options.gpus));
    }
    std::vector<int> devices(static_cast<std::size_t>(options.gpus));
    std::iota(devices.begin(), devices.end(), 0);
    result = sluice::Communicator<B>::for_devices(devices);
    return result;
}

/// What `run_in_memory` does, with ranks.
template <sluice::Backend B>
examples::Report run_data_parallel(const Options& options, std::ostream& reported) {
    std::vector<sluice::Communicator<B>> communicators = make_ranks<B>(options);
    std::ostream nowhere(nullptr);
    std::ostream& out = communicators[0].rank() == 0 ? reported : nowhere;
    std::unique_ptr<DigitWorkload> digits;
    std::unique_ptr<SyntheticWorkload> synthetic;
    if (options.synthetic())
        synthetic = std::make_unique<SyntheticWorkload>(options);
    else
        digits = std::make_unique<DigitWorkload>(options);
    const Workload& workload = digits ? static_cast<const Workload&>(*digits) : *synthetic;
    const Plan& plan = workload.plan();
    examples::Report report = begin_report<B>(plan, options, out);
    if (synthetic)
        synthetic->draw();

    LocalRanks<B> ranks(
        std::move(communicators), [&] { return make_encoder<B>(plan, options); },
        [&](const sluice::Communicator<B>* communicator) {
            return make_decoder<B>(plan, options, communicator);
        });
    out << ranks.ranks() << " ranks, each with such a batch" << std::endl;
    report.extra.emplace_back("ranks", std::int64_t{ranks.ranks()});
    const sluice::BasicStream<B> stream;
    load_encoder<B>(stream, ranks.encoder(0), digits.get(), options, report, out);
    const std::vector<nn::NamedTensor> first_weights =
        scaled(ranks.decoder(0).weights(stream), plan.first_weight_gain);
    ranks.on_each([&](std::size_t i) {
        const sluice::BasicStream<B> there;
        std::vector<nn::NamedTensor> tensors = ranks.encoder(i).weights(there);
        take_from_first(ranks.communicator(i), tensors);
        ranks.encoder(i).load(there, tensors);
    });

    const int workers = options.worker_count(std::is_same_v<B, sluice::Host>);
    examples::TrainingRuns runs;
    examples::Timelines timelines(options.timelines);
    for (const sluice::Schedule schedule : options.schedules) {
        if (schedule == sluice::Schedule::automatic) // of "all": ranks choose nothing by themselves
            continue;
        const auto [training, equal] =
            train_ranks(workload, ranks, first_weights, schedule, workers, timelines);
        examples::RunResult& result = runs.add(schedule, training, ranks.decoder(0).weights(stream));
        result.extra.emplace_back("identical_on_ranks", equal);
        result.notes.push_back(equal ? "all ranks have the same weights, bit by bit"
                                     : "the ranks' weights differ, which they must not");
        if (options.losses) {
            result.extra.emplace_back("losses",
                                      std::vector<double>(training.losses.begin(), training.losses.end()));
        }
    }
    report.runs = runs.runs();
    examples::print_table(report, out);
    timelines.show(out, report);
    if (digits)
        report_held_out(evaluate(*digits, ranks.encoder(0), ranks.decoder(0)), plan, options, report, out);
    return report;
}

} // namespace frozen_encoder::detail

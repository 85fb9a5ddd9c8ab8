/// \file
/// The experiment from beginning to end, on several GPUs.
#pragma once

#include <memory>

#include <common/local_ranks.hpp>
#include <common/text.hpp>
#include <frozen_encoder/data_parallel.hpp>
#include <frozen_encoder/run.hpp>

namespace frozen_encoder::detail {

/// What `run_in_memory` does, with ranks.
template <sluice::Backend B>
examples::Report run_data_parallel(const Options& options, std::ostream& reported) {
    std::vector<sluice::Communicator<B>> communicators = examples::make_ranks<B>(options.gpus);
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
    out << examples::counted(static_cast<unsigned>(ranks.ranks()), "rank") << ", each with such a batch"
        << std::endl;
    report.extra.emplace_back("ranks", std::int64_t{ranks.ranks()});
    const sluice::BasicStream<B> stream;
    load_encoder<B>(stream, ranks.encoder(0), digits.get(), options, report, out);
    nn::Decoder<B> whole = make_decoder<B>(plan, options);
    const std::vector<nn::NamedTensor> first_weights = scaled(whole.weights(stream), plan.first_weight_gain);
    examples::StartLines start(ranks.size());
    examples::on_each_rank(
        ranks.communicators(),
        [&](std::size_t i) {
            const sluice::BasicStream<B> there;
            std::vector<nn::NamedTensor> tensors = ranks.encoder(i).weights(there);
            examples::take_from_first(ranks.communicators()[i], tensors, start.training, i);
            ranks.encoder(i).load(there, tensors);
        },
        &start);

    const int workers = options.worker_count(std::is_same_v<B, sluice::Host>);
    examples::TrainingRuns runs;
    examples::Timelines timelines(options.timelines);
    const examples::Checkpoints checkpoints =
        make_checkpoints<B>(workload, ranks.encoder(0), stream, options);
    for (const sluice::Schedule schedule : options.schedules) {
        if (schedule == sluice::Schedule::automatic) // of "all": ranks choose nothing by themselves
            continue;
        const auto [training, weights, equal, costs] =
            train_ranks(workload, ranks,
                        checkpoints.resumed() != nullptr
                            ? checkpoints.resumed()->template named<nn::NamedTensor>(decoder_prefix)
                            : first_weights,
                        schedule, workers, timelines, checkpoints);
        examples::TrainingState trained{.step = training.losses.size(), .losses = {}, .tensors = {}};
        trained.add(decoder_prefix, weights);
        const std::string hash = examples::hash_of(trained);
        out << examples::weights_line(hash, trained.step) << " under " << to_string(schedule) << std::endl;
        whole.load(stream, weights);
        examples::RunResult& result = runs.add(schedule, training, weights);
        result.extra.emplace_back("weights", hash);
        result.extra.emplace_back("identical_on_ranks", equal);
        examples::add_costs(result, costs);
        result.notes.push_back(equal ? "all ranks have the same weights, bit by bit"
                                     : "the ranks' weights differ, which they must not");
        if (options.losses) {
            result.extra.emplace_back("losses",
                                      std::vector<double>(training.losses.begin(), training.losses.end()));
        }
    }
    report.runs = runs.runs();
    examples::print_table(report, out);
    if (ranks.communicators()[0].rank() == 0)
        timelines.show(out, report);
    if (digits)
        report_held_out(evaluate(*digits, ranks.encoder(0), whole), plan, options, report, out);
    return report;
}

} // namespace frozen_encoder::detail

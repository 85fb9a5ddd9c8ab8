/// \file
/// The experiment from beginning to end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <common/checkpoint.hpp>
#include <common/kernel_trace.hpp>
#include <common/report.hpp>
#include <common/text.hpp>
#include <common/timelines.hpp>
#include <common/training.hpp>
#include <common/workers.hpp>
#include <resnet18/alone.hpp>
#include <resnet18/data.hpp>
#include <resnet18/data_parallel.hpp>
#include <resnet18/evaluate.hpp>
#include <resnet18/inference.hpp>
#include <resnet18/network.hpp>
#include <resnet18/options.hpp>
#include <resnet18/start_file.hpp>
#include <resnet18/summary.hpp>
#include <resnet18/train.hpp>

namespace resnet18 {
namespace detail {

/// The rungs, one after another.
template <sluice::Backend B>
class Ladder {
public:
    Ladder(const Options& options, examples::Report& report, std::ostream& out)
        : options_(options), report_(report), out_(out), data_(open_data(report.data, options)) {}

    void climb() {
        require_image_for_each_rank(*data_.set, options_);
        kernels_.require<B>();
        if (options_.ranks() > 1)
            ranks_ = examples::make_ranks<B>(options_.gpus);
        else
            timelines_.sample_memory<B>();
        for (const int number : options_.rungs) {
            const Rung& rung = all_rungs()[static_cast<std::size_t>(number)];
            if (precision_of<B>(options_, rung.precision) == Precision::float16) {
                climb<typename Networks<B>::Half>(rung);
            } else {
                climb<typename Networks<B>::Single>(rung);
            }
        }
        if (ranks_.empty() || ranks_[0].rank() == 0)
            timelines_.show(out_, report_);
        kernels_.show(out_);
    }

private:
    /// Images that each rank trains on in an epoch.
    std::size_t images_of_rank() const {
        return data_.set->size() / static_cast<std::size_t>(options_.ranks());
    }

    /// Images of a batch that is trained on: what the rung says, or all that there are.
    std::size_t batch_of(const Rung& rung) const {
        const bool is_narrow = size_of<B>(options_) == Size::narrow;
        const std::size_t usual = is_narrow ? rung.narrow_batch : rung.batch;
        return std::min(options_.batch ? static_cast<std::size_t>(*options_.batch) : usual, images_of_rank());
    }

    int workers_of(const Rung& rung) const {
        if (!rung.has_workers)
            return 0;
        const int usual = is_host<B> ? examples::workers_for_machine(examples::other_threads(true, 4)) : 8;
        return options_.workers.value_or(usual);
    }

    /// With the timed steps and those before them.
    TrainOptions train_options(const Rung& rung, std::size_t batch) const {
        TrainOptions train{.zeroes_gradients = rung.zeroes_gradients,
                           .workers = workers_of(rung),
                           .bucket_bytes = options_.bucket_megabytes << 20,
                           .rate_falls = options_.rate_falls.value_or(data_.held_out != nullptr)};
        const std::size_t epoch = (images_of_rank() + batch - 1) / batch;
        const std::size_t epochs = is_host<B> ? (options_.rungs.size() > 1 ? 1 : 4) : batch <= 64 ? 2 : 6;
        train.steps = options_.epochs  ? epoch * static_cast<std::size_t>(*options_.epochs)
                      : options_.steps ? static_cast<std::size_t>(*options_.steps)
                                       : epoch * epochs;
        // Each slot twice, and the short last batch, too, where epochs are brief.
        const std::size_t laps = 2 * static_cast<std::size_t>(source_slots(train.workers));
        train.warmup = is_host<B> ? 2 : std::max(laps, epoch <= 64 ? 2 * epoch : 0);
        if (options_.warmup)
            train.warmup = static_cast<std::size_t>(*options_.warmup);
        return train;
    }

    Input<B> make_input(const images::ImageSet& set, const Rung& rung, std::size_t steps, bool shuffles,
                        int rank = 0, int ranks = 1) const {
        const std::size_t images = set.size() / static_cast<std::size_t>(ranks);
        const std::size_t batch = std::min(batch_of(rung), images);
        const std::size_t epoch = (images + batch - 1) / batch;
        return Input<B>(set, rung.pixels,
                        {.batch = batch,
                         .epochs = static_cast<std::uint32_t>((steps + epoch - 1) / epoch),
                         .seed = options_.seed,
                         .shuffle = shuffles,
                         .shard = static_cast<std::uint64_t>(rank),
                         .shards = static_cast<std::uint64_t>(ranks),
                         .side = size_of<B>(options_) == Size::narrow ? 40 : 224,
                         .memory = rung.memory});
    }

    template <class Network>
    void climb(const Rung& rung) {
        if (!ranks_.empty())
            return climb_on_ranks<Network>(rung);
        const std::size_t batch = batch_of(rung);
        TrainOptions train = train_options(rung, batch);
        const Input<B> input = make_input(*data_.set, rung, train.warmup + train.steps, true);
        const nn::ResNet18Options wanted =
            network_options<B>(options_, batch, options_.fuse_statistics && rung.is_compiled);
        const examples::Checkpoints checkpoints = make_checkpoints(rung, wanted, input, train);
        Network& network = networks_.template get<Network>(wanted);
        require_classes(network);
        out_ << "\nrung " << rung.number << ": " << rung.change << "; " << examples::counted(batch, "image")
             << " a batch in " << to_string(precision_of<B>(options_, rung.precision)) << ", "
             << examples::counted(train.steps, "step") << " after " << train.warmup << ", "
             << workers_text(train.workers) << std::endl;
        make_plans<B>(network, batch);
        if (const std::size_t last = input.batch_size(input.batches_per_epoch() - 1); last < batch)
            make_plans<B>(network, last);

        // Seldom, since asking the driver is in the way of launches, and memory is taken before the first step.
        const sluice::MemorySampler<B> memory(std::chrono::milliseconds(50));

        if (!options_.save_start.empty())
            write_start(networks_.first_weights(), *data_.set, order_of(input, train), options_.save_start);

        const std::vector<sluice::Schedule> own{rung.schedule};
        examples::TrainingRuns runs;
        for (const sluice::Schedule schedule : options_.has_schedules ? options_.schedules : own) {
            train.schedule = schedule;
            train.title = "rung " + std::to_string(rung.number) + ", " + to_string(schedule);
            climb_under(rung, input, network, train, checkpoints, memory, runs);
        }
        report_.runs.insert(report_.runs.end(), runs.runs().begin(), runs.runs().end());
    }

    /// One rung with several ranks.
    template <class Network>
    void climb_on_ranks(const Rung& rung) {
        const std::size_t batch = batch_of(rung);
        TrainOptions train = train_options(rung, batch);
        const auto make_share = [&](int rank, int ranks) {
            return make_input(*data_.set, rung, train.warmup + train.steps, true, rank, ranks);
        };
        const nn::ResNet18Options wanted =
            network_options<B>(options_, batch, options_.fuse_statistics && rung.is_compiled);
        const examples::Checkpoints checkpoints =
            make_checkpoints(rung, wanted, make_share(ranks_[0].rank(), options_.ranks()), train);
        RankNetworks<B, Network> networks(ranks_, wanted);
        require_classes(networks.first());
        out_ << "\nrung " << rung.number << ": " << rung.change << "; " << options_.ranks() << " ranks, "
             << examples::counted(batch, "image") << " a batch each in "
             << to_string(precision_of<B>(options_, rung.precision)) << ", "
             << examples::counted(train.steps, "step") << " after " << train.warmup << std::endl;
        networks.prepare(batch);
        for (const sluice::Communicator<B>& rank : ranks_) {
            const Input<B> share = make_share(rank.rank(), rank.ranks());
            if (const std::size_t last = share.batch_size(share.batches_per_epoch() - 1); last < batch)
                networks.prepare(last);
        }
        const sluice::MemorySampler<B> memory(std::chrono::milliseconds(50)); // of the first rank here
        const std::vector<sluice::Schedule> own{rung.schedule};
        examples::TrainingRuns runs;
        for (const sluice::Schedule schedule : options_.has_schedules ? options_.schedules : own) {
            if (schedule == sluice::Schedule::automatic) // of "all": ranks choose nothing by themselves
                continue;
            train.schedule = schedule;
            train.title = "rung " + std::to_string(rung.number) + ", " + to_string(schedule);
            RankTraining trained = networks.train(make_share, train, timelines_, checkpoints);
            Summary summary = summary_of(rung, train, trained.training, batch);
            summary.peak_bytes = memory.peak() - std::min(memory.peak(), bytes_before_);
            summary.steps_done = trained.state.step;
            summary.weights = examples::hash_of(trained.state);
            examples::RunResult& run =
                runs.add(schedule, trained.training, trained.state.named<nn::NamedTensor>(""));
            run.extra.emplace_back("identical_on_ranks", trained.equal_weights);
            examples::add_costs(run, trained.costs);
            if (data_.held_out) {
                const Input<B> held_out = make_input(*data_.held_out, rung, 1, false);
                summary.held_out_accuracy = held_out_accuracy(held_out, networks.first(), batch);
            }
            if (options_.losses)
                run.extra.emplace_back("losses", std::vector<double>(trained.training.losses.begin(),
                                                                     trained.training.losses.end()));
            summary.same_bits = schedule == sluice::Schedule::serial ? std::nullopt : run.identical_to_serial;
            add_to(run, summary);
            print(summary, out_);
            out_ << (trained.equal_weights ? "all ranks have the same weights, bit by bit"
                                           : "the ranks' weights differ, which they must not")
                 << std::endl;
        }
        report_.runs.insert(report_.runs.end(), runs.runs().begin(), runs.runs().end());
    }

    /// One rung under one schedule: the training, and what else is asked for.
    template <class Network>
    void climb_under(const Rung& rung, const Input<B>& input, Network& network, const TrainOptions& train,
                     const examples::Checkpoints& checkpoints, const sluice::MemorySampler<B>& memory,
                     examples::TrainingRuns& runs) {
        const sluice::BasicStream<B> stream;
        const std::vector<nn::NamedTensor>& first = networks_.first_weights();
        if (checkpoints.resumed() != nullptr)
            load_state<B>(network, *checkpoints.resumed());
        else
            network.load(stream, first);
        NotedTraining training = resnet18::train(input, network, train, timelines_, checkpoints);
        training.pace.bound.clear(); // the summary's is worked out from more
        Summary summary = summary_of(rung, train, training, input.batch());
        summary.peak_bytes = memory.peak() - std::min(memory.peak(), bytes_before_);
        const examples::TrainingState trained = state_of<B>(network, training.losses.size());
        summary.steps_done = trained.step;
        summary.weights = examples::hash_of(trained);
        examples::RunResult& run = runs.add(train.schedule, training, trained.named<nn::NamedTensor>(""));
        if (data_.held_out) {
            const Input<B> held_out = make_input(*data_.held_out, rung, 1, false);
            summary.held_out_accuracy = held_out_accuracy(held_out, network, input.batch());
        }
        if (options_.losses)
            run.extra.emplace_back("losses",
                                   std::vector<double>(training.losses.begin(), training.losses.end()));
        summary.kernels = record_kernels(input, network, train, training, first);
        if (options_.alone) {
            network.load(stream, first);
            const bool is_graphed = train.schedule == sluice::Schedule::graphed;
            summary.alone = samples_per_second_alone(input, network, rung.zeroes_gradients, is_graphed,
                                                     std::min<std::size_t>(train.steps, 60));
        }
        summary.same_bits =
            train.schedule == sluice::Schedule::serial ? std::nullopt : run.identical_to_serial;
        add_to(run, summary);
        print(summary, out_);
    }

    template <class Network>
    void require_classes(const Network& network) const {
        if (data_.set->classes() > network.options().classes) {
            const auto most = static_cast<std::uint64_t>(network.options().classes);
            throw examples::BadInput("--data: expected at most " + examples::counted(most, "class") +
                                     " for this network, not " + std::to_string(data_.set->classes()));
        }
    }

    /// The rung's checkpoints. Refuses to go on from one of another training.
    examples::Checkpoints make_checkpoints(const Rung& rung, const nn::ResNet18Options& network,
                                           const Input<B>& input, const TrainOptions& train) const {
        if (options_.checkpoints.file.empty() && options_.checkpoints.resume.empty())
            return {};
        return {
            options_.checkpoints,
            {.program = "resnet18",
             .steps = train.warmup + train.steps,
             .steps_per_epoch = input.batches_per_epoch(),
             .settings = {{"backend", B::name},
                          {"rung", std::to_string(rung.number)},
                          {"batch", std::to_string(input.batch()) +
                                        (options_.ranks() > 1
                                             ? " on each of " + std::to_string(options_.ranks()) + " ranks"
                                             : "")},
                          {"seed", std::to_string(options_.seed)},
                          {"network", size_of<B>(options_) == Size::narrow ? "narrow" : "full"},
                          {"stored channels", std::to_string(network.stored_channels)},
                          {"fused statistics", network.fuse_statistics ? "yes" : "no"},
                          {"precision", to_string(precision_of<B>(options_, rung.precision))},
                          {"learning rate", train.rates_text()},
                          {"images", std::to_string(data_.set->size())},
                          {"data", hash_of_images(*data_.set)}}}};
    }

    /// Where kernels are asked for, trains a while once more, since recording slows it down.
    template <class Network>
    std::optional<sluice::ActivityReport> record_kernels(const Input<B>& input, Network& network,
                                                         TrainOptions train, const NotedTraining& training,
                                                         const std::vector<nn::NamedTensor>& first) {
        train.steps = std::min<std::size_t>(train.steps, noted_batches + 6);
        return kernels_.run(training.step_seconds(), timelines_, [&](examples::Timelines& timed) {
            const sluice::BasicStream<B> stream;
            network.load(stream, first);
            return resnet18::train(input, network, train, timed).step_seconds();
        });
    }

    Summary summary_of(const Rung& rung, const TrainOptions& train, const NotedTraining& training,
                       std::size_t batch) const {
        Summary summary;
        summary.rung = rung.number;
        summary.schedule = to_string(train.schedule);
        summary.precision = to_string(precision_of<B>(options_, rung.precision));
        summary.batch = batch;
        summary.workers = train.workers;
        summary.samples_per_second = training.samples_per_second();
        summary.pace = training.pace;
        summary.at_work_share = 1 - training.report.device.neither;
        summary.bound = training.bound;
        return summary;
    }

    static std::string workers_text(int workers) {
        return workers == 0 ? "loaded by the training's thread"
                            : "loaded by " + examples::counted(static_cast<unsigned>(workers), "worker");
    }

    const Options& options_;
    examples::Report& report_;
    std::ostream& out_;
    std::size_t bytes_before_ = B::device_memory_in_use();
    Data data_;
    examples::Timelines timelines_{options_.timelines};
    examples::KernelTraces kernels_{options_.timelines};
    LatestNetwork<B> networks_;
    std::vector<sluice::Communicator<B>> ranks_; ///< of this process; none where one trains alone
};

} // namespace detail

/// Climbs the rungs that the options name: trains on each from the same first weights and reports how fast it is and what
/// bounds it; on digits, also how many of the held-out ones the network names right. Or measures inference. Tells the
/// story on `out`, and returns what the JSON file holds.
///
/// Throws `examples::BadInput` for files and options that cannot be used, and where cuDNN is missing on a device;
/// `sluice::Error` for a backend's failure.
template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& reported) {
    require_networks<B>(options);
    std::ostream nowhere(nullptr);
    std::ostream& out = examples::Processes::launched().rank == 0 ? reported : nowhere;
    examples::Report report;
    report.experiment = "resnet18";
    report.backend = B::name;
    report.device = B::device_name(B::current_device());
    // What the CPU can train in seconds learns something, too.
    report.data = options.has_data || size_of<B>(options) == Size::full ? options.data : digits_folder();
    report.batch = options.batch.value_or(0);
    report.steps = options.steps.value_or(0);
    if constexpr (has_networks<B>) {
        const std::string version = nn::cudnn_version();
        out << "resnet18 on " << report.backend << ": " << report.device
            << (is_host<B> || version.empty() ? "" : ", cuDNN " + version) << "\n"
            << (size_of<B>(options) == Size::narrow ? "the narrow network" : "torchvision's network")
            << ", data: " << report.data << std::endl;
        if (options.inference) {
            measure_inference<B>(options, report, out);
        } else {
            detail::Ladder<B>(options, report, out).climb();
        }
    }
    return report;
}

// run_host.cpp and run_cuda.cpp instantiate it, beside each other.
extern template examples::Report run<sluice::Host>(const Options&, std::ostream&);
#if SLUICE_HAS_CUDA
extern template examples::Report run<sluice::Cuda>(const Options&, std::ostream&);
#endif

} // namespace resnet18

/// \file
/// The experiment on several GPUs: each trains the same network on its share of the images.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <common/gather_timelines.hpp>
#include <common/local_ranks.hpp>
#include <resnet18/network.hpp>
#include <resnet18/train.hpp>

namespace resnet18 {

/// What the first rank of this process has after a training.
struct RankTraining {
    NotedTraining training;          ///< with the mean losses of all ranks, and the samples of this one
    examples::TrainingState state{}; ///< with the running statistics of rank 0
    bool equal_weights = true;       ///< whether all ranks' are the same, bit by bit
    std::vector<examples::RankCost> costs{}; ///< of all ranks, where timelines are kept, at rank 0
};

/// The networks of this process's ranks.
template <sluice::Backend B, class Network>
class RankNetworks {
public:
    /// `ranks` outlive it.
    RankNetworks(std::vector<sluice::Communicator<B>>& ranks, const nn::ResNet18Options& options)
        : ranks_(ranks) {
        for (const sluice::Communicator<B>& rank : ranks) {
            const sluice::DeviceGuard<B> device(rank.device());
            networks_.push_back(std::make_unique<Network>(options));
        }
        const sluice::DeviceGuard<B> device(ranks[0].device());
        const sluice::BasicStream<B> stream;
        first_weights_ = networks_[0]->weights(stream);
    }

    Network& first() { return *networks_[0]; }

    /// Makes all plans for batches of `images`. Before the first training, while no other rank waits for this one.
    void prepare(std::size_t images) {
        for (std::size_t i = 0; i < networks_.size(); ++i) {
            const sluice::DeviceGuard<B> device(ranks_[i].device());
            make_plans<B>(*networks_[i], images);
        }
    }

    /// Trains all from the same first weights, or from what `checkpoints` go on from, which has the running statistics of
    /// rank 0: no step depends on them. `make_input(rank, ranks)` makes a rank's share. `timelines` of rank 0 keeps what
    /// all did when.
    template <class MakeInput>
    RankTraining train(MakeInput&& make_input, const TrainOptions& options, examples::Timelines& timelines,
                       const examples::Checkpoints& checkpoints) {
        examples::StartLines start(ranks_.size());
        RankTraining result;
        std::vector<examples::Timelines> recorded(ranks_.size(), timelines.for_rank());
        examples::on_each_rank(
            ranks_,
            [&](std::size_t i) {
                const sluice::Communicator<B>& rank = ranks_[i];
                const Input<B> input = make_input(rank.rank(), rank.ranks());
                const sluice::BasicStream<B> stream;
                if (checkpoints.resumed() != nullptr)
                    load_state<B>(*networks_[i], *checkpoints.resumed());
                else
                    networks_[i]->load(stream, first_weights_);
                networks_[i]->average_gradients_over(rank, options.bucket_bytes);
                TrainOptions mine = options;
                mine.before_fill = [&] { start.training.arrive(i); };
                recorded[i].template sample_memory<B>();
                NotedTraining training =
                    resnet18::train(input, *networks_[i], mine, recorded[i],
                                    checkpoints.for_rank(rank.rank(), [&] { rank.require_alive(); }));
                networks_[i]->share_statistics(stream, rank);
                for (std::size_t step = 0; step < training.losses.size(); ++step)
                    training.losses[step] *= input.share(step);
                std::vector<nn::NamedTensor> weights = networks_[i]->weights(stream);
                examples::Agreement agreement =
                    examples::agree(rank, training.losses, weights, start.comparing, i);
                if (i == 0) {
                    training.losses = std::move(agreement.losses);
                    result.state = state_of<B>(*networks_[i], training.losses.size());
                    result.training = std::move(training);
                    result.equal_weights = agreement.equal_weights;
                }
            },
            &start);
        result.costs = examples::add_ranks(timelines, ranks_, recorded, "train");
        return result;
    }

private:
    std::vector<sluice::Communicator<B>>& ranks_;
    std::vector<std::unique_ptr<Network>> networks_;
    std::vector<nn::NamedTensor> first_weights_;
};

} // namespace resnet18

/// \file
/// The experiment on several GPUs: each trains the same decoder on its share of the batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <common/gather_timelines.hpp>
#include <common/local_ranks.hpp>
#include <frozen_encoder/options.hpp>
#include <frozen_encoder/train.hpp>
#include <frozen_encoder/workload.hpp>
#include <sluice/collective.hpp>

namespace frozen_encoder {

/// One rank's batches: batch i is batch i * ranks + rank of the workload. So step i of all ranks has the samples that step i of
/// one GPU with a batch as large as all of theirs has. Its rates are for the sum of the ranks' gradients.
class Shard : public Workload {
public:
    /// `start` is that of this process's ranks, of which this is rank `local`.
    Shard(const Workload& whole, int rank, int ranks, examples::StartLine& start, std::size_t local)
        : whole_(whole), rank_(static_cast<std::size_t>(rank)), ranks_(static_cast<std::size_t>(ranks)),
          start_(start), local_(local), plan_(whole.plan()) {
        plan_.learning_rate /= static_cast<float>(ranks);
        plan_.distinct /= ranks_;
    }
    const Plan& plan() const override { return plan_; }
    void fill(std::size_t index, std::span<std::uint8_t> images,
              std::span<std::uint8_t> labels) const override {
        start_.arrive(local_);
        whole_.fill(index * ranks_ + rank_, images, labels);
    }

private:
    const Workload& whole_;
    std::size_t rank_;
    std::size_t ranks_;
    examples::StartLine& start_;
    std::size_t local_;
    Plan plan_;
};

/// The ranks of this process: networks, and a thread for each while they train.
template <sluice::Backend B>
class LocalRanks {
public:
    /// `make_encoder()` and `make_decoder(communicator)` make a rank's networks, on its device.
    template <class MakeEncoder, class MakeDecoder>
    LocalRanks(std::vector<sluice::Communicator<B>> communicators, MakeEncoder&& make_encoder,
               MakeDecoder&& make_decoder)
        : communicators_(std::move(communicators)), encoders_(size()), decoders_(size()) {
        examples::on_each_rank(communicators_, [&](std::size_t i) {
            encoders_[i] = std::make_unique<nn::Encoder<B>>(make_encoder());
            decoders_[i] = std::make_unique<nn::Decoder<B>>(make_decoder(&communicators_[i]));
        });
    }

    std::size_t size() const noexcept { return communicators_.size(); }
    int ranks() const noexcept { return communicators_[0].ranks(); }
    nn::Encoder<B>& encoder(std::size_t i) { return *encoders_[i]; }
    nn::Decoder<B>& decoder(std::size_t i) { return *decoders_[i]; }
    std::vector<sluice::Communicator<B>>& communicators() { return communicators_; }

private:
    std::vector<sluice::Communicator<B>> communicators_;
    std::vector<std::unique_ptr<nn::Encoder<B>>> encoders_;
    std::vector<std::unique_ptr<nn::Decoder<B>>> decoders_;
};

/// What the first rank of this process has after a training.
struct RankTraining {
    MeasuredTraining training;               ///< with the mean losses of all ranks
    std::vector<nn::NamedTensor> weights{};  ///< of the decoder
    bool equal_weights = true;               ///< whether all ranks' are the same, bit by bit
    std::vector<examples::RankCost> costs{}; ///< of all ranks, where timelines are kept, at rank 0
};

/// Trains all ranks from `first_weights` under `schedule`, as far as `checkpoints` has not come. `timelines` of rank 0 keeps
/// what all did when.
template <sluice::Backend B>
RankTraining train_ranks(const Workload& workload, LocalRanks<B>& ranks,
                         const std::vector<nn::NamedTensor>& first_weights, sluice::Schedule schedule,
                         int workers, examples::Timelines& timelines,
                         const examples::Checkpoints& checkpoints) {
    examples::StartLines start(ranks.size());
    RankTraining result;
    std::vector<examples::Timelines> recorded(ranks.size(), timelines.for_rank());
    examples::on_each_rank(
        ranks.communicators(),
        [&](std::size_t i) {
            const sluice::Communicator<B>& communicator = ranks.communicators()[i];
            const Shard shard(workload, communicator.rank(), communicator.ranks(), start.training, i);
            const sluice::BasicStream<B> stream;
            ranks.decoder(i).load(stream, first_weights);
            MeasuredTraining training =
                train(shard, ranks.encoder(i), ranks.decoder(i), schedule, Placement{}, workers, recorded[i],
                      checkpoints.for_rank(communicator.rank(), [&] { communicator.require_alive(); }));
            start.collecting.arrive(i);
            std::vector<nn::NamedTensor> weights = ranks.decoder(i).weights(stream);
            examples::Agreement agreement =
                examples::agree(communicator, training.losses, weights, start.comparing, i);
            if (i == 0) {
                result.training = std::move(training);
                result.training.losses = std::move(agreement.losses);
                result.weights = std::move(weights);
                result.equal_weights = agreement.equal_weights;
            }
        },
        &start);
    result.costs = examples::add_ranks(timelines, ranks.communicators(), recorded, "train");
    return result;
}

} // namespace frozen_encoder

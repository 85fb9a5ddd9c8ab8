/// \file
/// The experiment on several GPUs: each trains the same decoder on its share of the batches.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iomanip>
#include <memory>
#include <mutex>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <common/bits.hpp>
#include <frozen_encoder/options.hpp>
#include <frozen_encoder/train.hpp>
#include <frozen_encoder/workload.hpp>
#include <sluice/collective.hpp>

namespace frozen_encoder {

/// Where ranks of one process wait for each other before their first batch: until all have allocated what they need, since an
/// allocation may wait for a device whose collective waits for this one's.
class StartLine {
public:
    explicit StartLine(std::size_t ranks) : there_(ranks, false), missing_(ranks) {}

    /// Rank `i` of this process is there. Returns when all are. Any number of its threads may call it. Throws `sluice::Error`
    /// when a rank will not come.
    void arrive(std::size_t i) {
        std::unique_lock lock(mutex_);
        if (!there_[i]) {
            there_[i] = true;
            if (--missing_ == 0)
                changed_.notify_all();
        }
        changed_.wait(lock, [&] { return missing_ == 0 || broken_; });
        if (broken_)
            throw sluice::Error("another rank failed before its first batch");
    }
    /// A rank will not come, if it has not.
    void give_up() noexcept {
        const std::lock_guard lock(mutex_);
        broken_ = true;
        changed_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<bool> there_;
    std::size_t missing_;
    bool broken_ = false;
};

/// One rank's batches: batch i is batch i * ranks + rank of the workload. So step i of all ranks has the samples that step i of
/// one GPU with a batch as large as all of theirs has. Its rates are for the sum of the ranks' gradients.
class Shard : public Workload {
public:
    /// `start` is that of this process's ranks, of which this is rank `local`.
    Shard(const Workload& whole, int rank, int ranks, StartLine& start, std::size_t local)
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
    StartLine& start_;
    std::size_t local_;
    Plan plan_;
};

/// What ranks have in common after a run.
struct Agreement {
    std::vector<float> losses; ///< of each step, the mean over the ranks
    bool equal_weights = true; ///< whether all ranks' weights have the same bits
};

/// FNV-1a of all bits.
inline std::uint64_t hash_of_bits(const std::vector<nn::NamedTensor>& tensors) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const nn::NamedTensor& tensor : tensors) {
        for (const std::byte byte : std::as_bytes(std::span(tensor.values)))
            hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
    }
    return hash;
}

/// Replaces the tensors' values by those of rank 0; all ranks call it with tensors of the same sizes.
template <sluice::Backend B>
void take_from_first(const sluice::Communicator<B>& communicator, std::vector<nn::NamedTensor>& tensors) {
    const sluice::BasicStream<B> stream;
    for (nn::NamedTensor& tensor : tensors) {
        sluice::DeviceBuffer<float, B> values(tensor.values.size());
        copy_and_wait(stream, values, tensor.values);
        broadcast(stream, communicator, values, 0);
        copy_and_wait(stream, tensor.values, values);
    }
}

/// Compares the ranks' results; all call it, when their steps are done.
template <sluice::Backend B>
Agreement agree(const sluice::Communicator<B>& communicator, const std::vector<float>& losses,
                const std::vector<nn::NamedTensor>& weights) {
    const auto ranks = static_cast<std::size_t>(communicator.ranks());
    const sluice::BasicStream<B> stream;
    Agreement result{.losses = losses};
    sluice::DeviceBuffer<float, B> means(losses.size());
    copy_and_wait(stream, means, losses);
    all_reduce(stream, communicator, means, sluice::Reduction::average);
    copy_and_wait(stream, result.losses, means);
    sluice::DeviceBuffer<std::uint64_t, B> mine(1);
    sluice::DeviceBuffer<std::uint64_t, B> all(ranks);
    copy_and_wait(stream, mine, std::vector<std::uint64_t>{hash_of_bits(weights)});
    all_gather(stream, communicator, mine, all);
    std::vector<std::uint64_t> hashes(ranks);
    copy_and_wait(stream, hashes, all);
    for (const std::uint64_t hash : hashes)
        result.equal_weights = result.equal_weights && hash == hashes[0];
    return result;
}

/// The ranks of this process: networks, and a thread for each while they train.
template <sluice::Backend B>
class LocalRanks {
public:
    /// `make_encoder()` and `make_decoder(communicator)` make a rank's networks, on its device.
    template <class MakeEncoder, class MakeDecoder>
    LocalRanks(std::vector<sluice::Communicator<B>> communicators, MakeEncoder&& make_encoder,
               MakeDecoder&& make_decoder)
        : communicators_(std::move(communicators)), encoders_(size()), decoders_(size()) {
        on_each([&](std::size_t i) {
            encoders_[i] = std::make_unique<nn::Encoder<B>>(make_encoder());
            decoders_[i] = std::make_unique<nn::Decoder<B>>(make_decoder(&communicators_[i]));
        });
    }

    std::size_t size() const noexcept { return communicators_.size(); }
    int ranks() const noexcept { return communicators_[0].ranks(); }
    nn::Encoder<B>& encoder(std::size_t i) { return *encoders_[i]; }
    nn::Decoder<B>& decoder(std::size_t i) { return *decoders_[i]; }
    const sluice::Communicator<B>& communicator(std::size_t i) const { return communicators_[i]; }

    /// Calls `work(i)` for each rank on a thread of its own, with its device current, and waits for them. Where one throws, the
    /// group is aborted, `start` given up, and what was thrown first is thrown.
    template <class Work>
    void on_each(Work&& work, StartLine* start = nullptr) {
        std::mutex mutex;
        std::exception_ptr first;
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < size(); ++i) {
            threads.emplace_back([&, i] {
                try {
                    const sluice::DeviceGuard<B> device(communicators_[i].device());
                    work(i);
                } catch (...) {
                    {
                        const std::lock_guard lock(mutex);
                        if (first == nullptr)
                            first = std::current_exception();
                    }
                    if (start != nullptr)
                        start->give_up();
                    communicators_[i].abort("rank " + std::to_string(communicators_[i].rank()) +
                                            " has failed");
                }
            });
        }
        for (std::thread& thread : threads)
            thread.join();
        if (first != nullptr)
            std::rethrow_exception(first);
    }

private:
    std::vector<sluice::Communicator<B>> communicators_;
    std::vector<std::unique_ptr<nn::Encoder<B>>> encoders_;
    std::vector<std::unique_ptr<nn::Decoder<B>>> decoders_;
};

/// Trains all ranks from `first_weights` under `schedule`. Returns the first local rank's training, with the mean losses of all
/// ranks, and whether all have the same weights.
template <sluice::Backend B>
std::pair<MeasuredTraining, bool>
train_ranks(const Workload& workload, LocalRanks<B>& ranks, const std::vector<nn::NamedTensor>& first_weights,
            sluice::Schedule schedule, int workers, examples::Timelines& timelines) {
    StartLine start(ranks.size());
    MeasuredTraining result;
    bool equal = true;
    ranks.on_each(
        [&](std::size_t i) {
            const sluice::Communicator<B>& communicator = ranks.communicator(i);
            const Shard shard(workload, communicator.rank(), communicator.ranks(), start, i);
            const sluice::BasicStream<B> stream;
            ranks.decoder(i).load(stream, first_weights);
            examples::Timelines none{examples::TimelineOptions{}};
            MeasuredTraining training = train(shard, ranks.encoder(i), ranks.decoder(i), schedule,
                                              Placement{}, workers, i == 0 ? timelines : none);
            Agreement agreement = agree(communicator, training.losses, ranks.decoder(i).weights(stream));
            if (i == 0) {
                result = std::move(training);
                result.losses = std::move(agreement.losses);
                equal = agreement.equal_weights;
            }
        },
        &start);
    return {std::move(result), equal};
}

} // namespace frozen_encoder

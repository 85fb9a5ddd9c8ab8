/// \file
/// Ranks of one process that train together: their threads, and what they agree on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <common/bad_input.hpp>
#include <common/fnv1a.hpp>
#include <common/processes.hpp>
#include <common/text.hpp>
#include <sluice/collective.hpp>
#include <sluice/memory.hpp>

namespace examples {

/// Where ranks of one process wait for each other before a collective, after all have allocated what they need: an allocation may
/// wait for a device whose collective waits for this one's. Passed once by each rank.
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

/// The start lines of one run, each of which the ranks pass once.
struct StartLines {
    explicit StartLines(std::size_t ranks) : training(ranks), collecting(ranks), comparing(ranks) {}
    void give_up() noexcept {
        training.give_up();
        collecting.give_up();
        comparing.give_up();
    }

    StartLine training;
    StartLine collecting; ///< weights that ranks have parts of
    StartLine comparing;
};

/// The ranks of this process. A rank for each of the first `gpus` devices, or this process's one under mpirun. Throws BadInput
/// where there are fewer devices.
template <sluice::Backend B>
std::vector<sluice::Communicator<B>> make_ranks(int gpus) {
    std::vector<sluice::Communicator<B>> result;
    if (Processes::launched().ranks > 1) {
        result.push_back(make_process_rank<B>());
        return result;
    }
    if (gpus > B::device_count()) {
        throw BadInput("--gpus: expected at most the " +
                       counted(static_cast<unsigned>(B::device_count()), "device") + " that there are, not " +
                       std::to_string(gpus));
    }
    std::vector<int> devices(static_cast<std::size_t>(gpus));
    std::iota(devices.begin(), devices.end(), 0);
    result = sluice::Communicator<B>::for_devices(devices, {.timeout = rank_timeout});
    return result;
}

/// Calls `work(i)` for each of `ranks` on a thread of its own, with its device current, and waits for them. Where one throws,
/// its group is aborted, `start` given up, and what was thrown first is thrown.
template <sluice::Backend B, class Work>
void on_each_rank(std::vector<sluice::Communicator<B>>& ranks, Work&& work, StartLines* start = nullptr) {
    std::mutex mutex;
    std::exception_ptr first;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        threads.emplace_back([&, i] {
            try {
                const sluice::DeviceGuard<B> device(ranks[i].device());
                work(i);
            } catch (...) {
                {
                    const std::lock_guard lock(mutex);
                    if (first == nullptr)
                        first = std::current_exception();
                }
                if (start != nullptr)
                    start->give_up();
                ranks[i].abort("rank " + std::to_string(ranks[i].rank()) + " has failed");
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    if (first != nullptr)
        std::rethrow_exception(first);
}

/// What ranks have in common after a run.
struct Agreement {
    std::vector<float> losses; ///< of each step, the mean over the ranks
    bool equal_weights = true; ///< whether all ranks' weights have the same bits
};

/// FNV-1a of all bits of tensors with `values`.
template <class Tensors>
std::uint64_t hash_of_bits(const Tensors& tensors) {
    Fnv1a hash;
    for (const auto& tensor : tensors)
        hash.add({reinterpret_cast<const std::uint8_t*>(tensor.values.data()),
                  tensor.values.size() * sizeof(float)});
    return hash.value();
}

/// Compares the ranks' results. All call it when their steps are done, rank `i` of this process with its device current.
template <sluice::Backend B, class Tensors>
Agreement agree(const sluice::Communicator<B>& communicator, const std::vector<float>& losses,
                const Tensors& weights, StartLine& start, std::size_t i) {
    const auto ranks = static_cast<std::size_t>(communicator.ranks());
    const sluice::BasicStream<B> stream;
    sluice::DeviceBuffer<float, B> means(losses.size());
    sluice::DeviceBuffer<std::uint64_t, B> mine(1);
    sluice::DeviceBuffer<std::uint64_t, B> all(ranks);
    copy_and_wait(stream, means, losses);
    copy_and_wait(stream, mine, std::vector<std::uint64_t>{hash_of_bits(weights)});
    start.arrive(i);
    all_reduce(stream, communicator, means, sluice::Reduction::average);
    all_gather(stream, communicator, mine, all);
    Agreement result{.losses = losses};
    std::vector<std::uint64_t> hashes(ranks);
    copy_and_wait(stream, result.losses, means);
    copy_and_wait(stream, hashes, all);
    for (const std::uint64_t hash : hashes)
        result.equal_weights = result.equal_weights && hash == hashes[0];
    return result;
}

/// Replaces the values of tensors by those of rank 0; all ranks call it with tensors of the same sizes.
template <sluice::Backend B, class Tensors>
void take_from_first(const sluice::Communicator<B>& communicator, Tensors& tensors, StartLine& start,
                     std::size_t i) {
    const sluice::BasicStream<B> stream;
    std::vector<float> values;
    for (const auto& tensor : tensors)
        values.insert(values.end(), tensor.values.begin(), tensor.values.end());
    sluice::DeviceBuffer<float, B> there(values.size());
    copy_and_wait(stream, there, values);
    start.arrive(i);
    broadcast(stream, communicator, there, 0);
    copy_and_wait(stream, values, there);
    auto from = values.begin();
    for (auto& tensor : tensors) {
        for (float& value : tensor.values)
            value = *from++;
    }
}

} // namespace examples

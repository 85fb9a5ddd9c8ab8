/// \file
/// What all ranks did when, brought to the first one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <common/rank_timelines.hpp>
#include <common/timelines.hpp>
#include <sluice/collective.hpp>
#include <sluice/memory.hpp>

namespace examples {

/// All ranks' timelines at each rank, by rank; each process calls it with its only rank's. \throws sluice::Error
template <sluice::Backend B>
std::vector<RankTimeline> gather_timelines(const sluice::Communicator<B>& rank, const RankTimeline& mine) {
    const sluice::DeviceGuard<B> device(rank.device());
    const sluice::BasicStream<B> stream;
    const auto ranks = static_cast<std::size_t>(rank.ranks());
    std::vector<std::uint8_t> bytes = to_bytes(mine);

    sluice::DeviceBuffer<std::uint64_t, B> size(1);
    sluice::DeviceBuffer<std::uint64_t, B> all_sizes(ranks);
    std::vector<std::uint64_t> sizes(ranks);
    copy_and_wait(stream, size, std::vector<std::uint64_t>{bytes.size()});
    all_gather(stream, rank, size, all_sizes);
    copy_and_wait(stream, sizes, all_sizes);

    const std::size_t most = *std::max_element(sizes.begin(), sizes.end());
    bytes.resize(most);
    sluice::DeviceBuffer<std::uint8_t, B> sent(most);
    sluice::DeviceBuffer<std::uint8_t, B> received(most * ranks);
    copy_and_wait(stream, sent, bytes);
    all_gather(stream, rank, sent, received);
    bytes.resize(most * ranks);
    copy_and_wait(stream, bytes, received);

    std::vector<RankTimeline> all;
    for (std::size_t i = 0; i < ranks; ++i)
        all.push_back(rank_timeline_of({bytes.data() + i * most, sizes[i]}));
    return all;
}

/// Adds what all ranks did in one training to `timelines` of the first one. `recorded` are those of this process's `ranks`, of
/// `Timelines::for_rank`, with one timeline each. `stage` is the stage that the ranks do together. All processes call it,
/// while no rank is at work. Returns what the ranks cost each other; nothing at other ranks, and where nothing is recorded.
template <sluice::Backend B>
std::vector<RankCost> add_ranks(Timelines& timelines, const std::vector<sluice::Communicator<B>>& ranks,
                                const std::vector<Timelines>& recorded, const std::string& stage) {
    if (timelines.timed_batches() == 0)
        return {};
    std::vector<RankTimeline> all;
    for (std::size_t i = 0; i < ranks.size(); ++i)
        all.push_back({ranks[i].rank(), host_name(), recorded[i].all().at(0)});
    if (static_cast<int>(ranks.size()) < ranks[0].ranks()) // the others are processes, as this one
        all = gather_timelines(ranks[0], all[0]);
    return ranks[0].rank() == 0 ? timelines.add_ranks(all, stage) : std::vector<RankCost>{};
}

} // namespace examples

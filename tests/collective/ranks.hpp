// Ranks of one process, a thread for each.
#pragma once

#include <cstddef>
#include <exception>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <sluice/collective.hpp>
#include <sluice/memory.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace sluice::test {

using Comm = Communicator<TestBackend>;

inline std::vector<Comm> communicators(int ranks,
                                       std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    std::vector<int> devices(static_cast<std::size_t>(ranks));
    std::iota(devices.begin(), devices.end(), 0);
    return Comm::for_devices(devices, {.timeout = timeout});
}

/// Calls `work(communicator)` on a thread for each rank, with its device current. Gives what each threw; empty for nothing.
/// `work` owns the communicator, which goes when it returns.
template <class Work>
std::vector<std::string> on_ranks(std::vector<Comm> ends, Work&& work) {
    std::vector<std::string> thrown(ends.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
        threads.emplace_back([&work, &thrown, rank, end = std::move(ends[rank])]() mutable {
            try {
                const DeviceGuard<TestBackend> guard(end.device());
                work(std::move(end));
            } catch (const std::exception& error) {
                thrown[rank] = error.what();
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    return thrown;
}

inline bool enough_devices(int ranks) {
#if defined(SLUICE_TEST_CUDA) && !SLUICE_HAS_NCCL
    MESSAGE("skipped: built without NCCL");
    return false;
#endif
    if (TestBackend::device_count() >= ranks)
        return true;
    MESSAGE("skipped: needs " << ranks << " devices, and there are " << TestBackend::device_count());
    return false;
}

} // namespace sluice::test

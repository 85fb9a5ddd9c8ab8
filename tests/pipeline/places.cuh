// Which multiprocessors the kernels of stages run on.
#pragma once

#include <cstddef>
#include <vector>

#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>

namespace pipeline_shares_gpu {

using namespace sluice;

inline constexpr std::size_t most = 1024; // multiprocessors of a device

// Blocks note where they run, and stay for a while, so that they spread over all that the kernel may use.
static __global__ void note_multiprocessor(unsigned* seen, unsigned size, long long cycles) {
    unsigned id = 0;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    if (threadIdx.x == 0 && id < size)
        seen[id] = 1;
    const long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
}

// Of some stages, which multiprocessors they have been on.
class Places {
public:
    explicit Places(std::size_t stages) : seen_(stages * most), stages_(stages) { clear(); }
    void clear() {
        fill_bytes(stream_, seen_, 0);
        stream_.sync();
    }
    // More blocks than the device holds at once: two of 1,024 threads are all that a multiprocessor has room for.
    void note(CudaStreamRef stream, std::size_t stage) {
        const auto blocks = static_cast<unsigned>(3 * Cuda::multiprocessors());
        note_multiprocessor<<<blocks, 1024, 0, stream.get()>>>(seen_.data() + stage * most, most, 20000);
    }
    std::vector<bool> of(std::size_t stage) {
        std::vector<unsigned> words(stages_ * most);
        copy_and_wait(stream_, words, seen_);
        std::vector<bool> set(most);
        for (std::size_t i = 0; i < most; ++i)
            set[i] = words[stage * most + i] != 0;
        return set;
    }

private:
    CudaStream stream_;
    DeviceBuffer<unsigned, Cuda> seen_;
    std::size_t stages_;
};

inline int size_of(const std::vector<bool>& set) {
    int size = 0;
    for (const bool in : set)
        size += in ? 1 : 0;
    return size;
}
inline bool are_disjoint(const std::vector<bool>& a, const std::vector<bool>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] && b[i])
            return false;
    }
    return true;
}

} // namespace pipeline_shares_gpu

// Small pieces of work for streams, the same on both backends: a task on a host stream, a kernel on a
// device's (stream_ops.cu).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <sluice/backend/default.hpp>

namespace sluice::test {

using Word = std::uint32_t;

/// What a stage makes of a word, given what it remembers. Not symmetric in anything: a word that comes twice,
/// late, or not at all changes all later ones.
SLUICE_HOST_DEVICE constexpr Word next_word(Word memory, Word in) { return (in ^ memory) * 2654435761u + in; }
/// What it remembers then.
SLUICE_HOST_DEVICE constexpr Word next_memory(Word memory, Word in) {
    return memory * 1664525u + in + 1013904223u;
}

namespace ops {

/// Longest time for which `hold` waits, so that a failed test ends.
inline constexpr unsigned hold_limit_milliseconds = 10000;

/// Passes `count` words from `in` to `out`, which may be the same, by `next_word`.
inline void step(host::Queue* stream, Word* out, const Word* in, Word* memory, std::size_t count) {
    Host::enqueue(stream, [=] {
        for (std::size_t i = 0; i < count; ++i) {
            const Word word = in[i];
            out[i] = next_word(memory[i], word);
            memory[i] = next_memory(memory[i], word);
        }
    });
}

/// Keeps the stream busy for so long.
inline void spin(host::Queue* stream, unsigned microseconds) {
    Host::enqueue(stream, [=] { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); });
}

/// Keeps the stream busy until `*gate`, in pinned memory, is not 0.
inline void hold(host::Queue* stream, Word* gate) {
    Host::enqueue(stream, [=] {
        const auto limit =
            std::chrono::steady_clock::now() + std::chrono::milliseconds(hold_limit_milliseconds);
        while (std::atomic_ref<Word>(*gate).load() == 0 && std::chrono::steady_clock::now() < limit)
            std::this_thread::sleep_for(std::chrono::microseconds(50));
    });
}

/// Has all kernels loaded, so that no later launch waits for that. There are none here.
inline void load_kernels(host::Queue*) {}

/// to[i] += from[i]
inline void add_words(host::Queue* stream, Word* to, const Word* from, std::size_t count) {
    Host::enqueue(stream, [=] {
        for (std::size_t i = 0; i < count; ++i)
            to[i] += from[i];
    });
}

/// to[i] = from[i] + value, read and written without tearing, for tests that race on purpose.
inline void add_racing(host::Queue* stream, Word* to, Word* from, Word value, std::size_t count) {
    Host::enqueue(stream, [=] {
        for (std::size_t i = 0; i < count; ++i) {
            const Word word = std::atomic_ref<Word>(from[i]).load(std::memory_order_relaxed);
            std::atomic_ref<Word>(to[i]).store(word + value, std::memory_order_relaxed);
        }
    });
}

#if SLUICE_HAS_CUDA
void step(cudaStream_t stream, Word* out, const Word* in, Word* memory, std::size_t count);
void spin(cudaStream_t stream, unsigned microseconds);
void hold(cudaStream_t stream, Word* gate);
void add_words(cudaStream_t stream, Word* to, const Word* from, std::size_t count);
void add_racing(cudaStream_t stream, Word* to, Word* from, Word value, std::size_t count);
void load_kernels(cudaStream_t stream);

/// A launch that the runtime refuses, with more threads in a block than there can be.
void launch_refused(cudaStream_t stream);
/// Work that writes to an address that no allocation holds: the device is lost for this process.
void write_illegal_address(cudaStream_t stream);
#endif

} // namespace ops

} // namespace sluice::test

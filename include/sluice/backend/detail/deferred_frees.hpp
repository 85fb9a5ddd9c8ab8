// Memory whose freeing would wait for a stream that waits for a thread.
#pragma once

#include <atomic>
#include <cstddef>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/list.hpp>

namespace sluice::detail {

/// `cudaFree` and `cudaFreeHost` wait for all streams, and other threads' calls of CUDA wait behind them: where a stream waits for a CPU
/// stage, or for a user's semaphore that a thread is to signal, that one might never go on. So memory is freed when no stream does. Any
/// thread may use it.
class DeferredFrees {
public:
    using Free = void (*)(void* memory) noexcept;
    /// So many blocks are to be kept at most.
    static constexpr std::size_t most = 16;

    static DeferredFrees& instance();

    /// Frees it when no stream waits for a CPU stage, for which it waits a second at most, and otherwise keeps it. A CPU stage waits for
    /// nothing: what it frees is kept. So it is while a stream waits for a user's semaphore that no stream will signal.
    void free(void* memory, Free call) noexcept;
    /// Frees what is kept, where no stream waits for a thread and this one is in no CPU stage. For where a thread has waited anyway.
    void try_again() noexcept {
        if (count() > 0) [[unlikely]]
            free_kept(false);
    }
    /// The same; with `wait` it lets CPU stages catch up for a second at most. Whether anything was freed.
    bool free_kept(bool wait) noexcept;
    /// The same where memory is short: lets users signal for a second, too.
    bool free_in_need() noexcept;
    /// How many blocks are kept.
    std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

private:
    struct Block {
        void* memory;
        Free free;
    };
    DeferredFrees();
    bool keep(const Block& block) noexcept;
    static bool users_wait() noexcept;

    struct Mutex;
    Mutex& mutex_;
    List<Block> kept_;
    std::atomic<std::size_t> count_{0};
};

} // namespace sluice::detail

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/backend/detail/deferred_frees.inl>
#endif

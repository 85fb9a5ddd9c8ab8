// Bodies of deferred_frees.hpp.
#pragma once

#include <mutex>

#include <sluice/backend/detail/calling_stage.hpp>
#include <sluice/backend/detail/deferred_frees.hpp>
#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/detail/waiting_thread.hpp>

namespace sluice::detail {

struct DeferredFrees::Mutex : std::mutex {};

SLUICE_BODY DeferredFrees::DeferredFrees() : mutex_(*new Mutex) {}

// Never destroyed: buffers of static lifetime may go later.
SLUICE_BODY DeferredFrees& DeferredFrees::instance() {
    static DeferredFrees& frees = *new DeferredFrees;
    return frees;
}

SLUICE_BODY bool DeferredFrees::keep(const Block& block) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        kept_.push_back(block);
    } catch (...) {
        return false; // There is no memory to note it in.
    }
    count_.store(kept_.size(), std::memory_order_relaxed);
    return true;
}

// Whether a stream waits for a user's semaphore that no stream will signal. This thread may be about to.
SLUICE_BODY bool DeferredFrees::users_wait() noexcept {
    return SemaphoreWaits::instance().any([](const void*, const void*) { return true; }, nullptr);
}

SLUICE_BODY void DeferredFrees::free(void* memory, Free call) noexcept {
    if (CallingPipeline::is_in_cpu_stage() || users_wait()) {
        if (!keep({memory, call}))
            call(memory);
        return;
    }
    {
        const SemaphoreWaits::Pause pause(true);
        if ((!pause || users_wait()) && keep({memory, call}))
            return;
        call(memory);
    }
    try_again();
}

SLUICE_BODY bool DeferredFrees::free_kept(bool wait) noexcept {
    if (CallingPipeline::is_in_cpu_stage() || users_wait()) // before anything is waited for in vain
        return false;
    const SemaphoreWaits::Pause pause(wait);
    if (!pause || users_wait())
        return false;
    List<Block> blocks;
    {
        const std::lock_guard lock(mutex_);
        blocks = static_cast<List<Block>&&>(kept_);
        count_.store(0, std::memory_order_relaxed);
    }
    for (const Block& block : blocks)
        block.free(block.memory);
    return !blocks.empty();
}

SLUICE_BODY bool DeferredFrees::free_in_need() noexcept {
    if (count() == 0)
        return false;
    for (WaitingThread thread(SemaphoreWaits::patience); users_wait() && thread.goes_on();) {
    }
    return free_kept(true);
}

} // namespace sluice::detail

// Bodies of semaphore_waits.hpp.
#pragma once

#include <mutex>

#include <sluice/backend/detail/calling_stage.hpp>
#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/detail/waiting_thread.hpp>

namespace sluice::detail {

struct SemaphoreWaits::Mutex : std::mutex {};

SLUICE_BODY SemaphoreWaits::SemaphoreWaits() : mutex_(*new Mutex) {}

// Never destroyed: semaphores of static lifetime may go later.
SLUICE_BODY SemaphoreWaits& SemaphoreWaits::instance() {
    static SemaphoreWaits& waits = *new SemaphoreWaits;
    return waits;
}

SLUICE_BODY bool SemaphoreWaits::is_paused() noexcept {
    const std::lock_guard lock(mutex_);
    return pauses_ > 0;
}

SLUICE_BODY void SemaphoreWaits::add(const Entry& entry) {
    std::unique_lock lock(mutex_);
    if (entry.waits && pauses_ > 0) {
        lock.unlock();
        for (WaitingThread thread(patience); is_paused() && thread.goes_on();) {
        }
        lock.lock();
    }
    if (entries_.size() >= look_at_) {
        std::size_t kept = 0;
        for (const Entry& old : entries_) {
            if (!at_least(old.calls->value(old.semaphore), old.value))
                entries_[kept++] = old;
        }
        while (entries_.size() > kept)
            entries_.pop_back();
        look_at_ = kept < 32 ? 64 : 2 * kept;
    }
    entries_.reserve(look_at_);
    entries_.push_back(entry);
}

SLUICE_BODY void SemaphoreWaits::take_back(const Entry& entry) noexcept {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = entries_.size(); i-- > 0;) {
        const Entry& one = entries_[i];
        if (one.semaphore != entry.semaphore || one.value != entry.value || one.stream != entry.stream ||
            one.waits != entry.waits)
            continue;
        entries_[i] = entries_.back();
        entries_.pop_back();
        return;
    }
}

SLUICE_BODY void SemaphoreWaits::forget(const void* semaphore) noexcept {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = entries_.size(); i-- > 0;) {
        if (entries_[i].semaphore != semaphore)
            continue;
        entries_[i] = entries_.back();
        entries_.pop_back();
    }
}

SLUICE_BODY void SemaphoreWaits::forget_stream(const void* stream) noexcept {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : entries_) {
        if (entry.waits && entry.stream == stream)
            entry.stream = this; // which is no stream; null is the default one on CUDA
    }
}

// Whether the semaphore has been raised so far, or a stream will do so.
SLUICE_BODY bool SemaphoreWaits::is_over(const Entry& entry) const {
    if (at_least(entry.calls->value(entry.semaphore), entry.value))
        return true;
    for (const Entry& other : entries_) {
        if (!other.waits && other.semaphore == entry.semaphore && at_least(other.value, entry.value))
            return true;
    }
    return false;
}

SLUICE_BODY std::size_t SemaphoreWaits::unsignalled(Ours ours, const void* context, bool fail) noexcept {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const Entry& entry : entries_) {
        if (!entry.waits || entry.for_thread || !ours(context, entry.stream) || is_over(entry))
            continue;
        ++count;
        if (fail)
            entry.calls->fail(entry.semaphore, entry.value);
    }
    return count;
}

SLUICE_BODY void SemaphoreWaits::end_waits(const void* semaphore) noexcept {
    {
        const std::lock_guard lock(mutex_);
        for (const Entry& entry : entries_) {
            if (entry.waits && entry.semaphore == semaphore && !is_over(entry))
                entry.calls->fail(entry.semaphore, entry.value);
        }
    }
    forget(semaphore);
}

SLUICE_BODY bool SemaphoreWaits::give_up(Ours ours, const void* context) noexcept {
    std::size_t waiting = unsignalled(ours, context, false);
    bool given_up = false;
    while (waiting != 0) {
        std::size_t now = waiting;
        for (WaitingThread thread(patience); now == waiting && thread.goes_on();)
            now = unsignalled(ours, context, false);
        if (now == waiting) {
            const bool any = unsignalled(ours, context, true) != 0;
            given_up = given_up || any;
            now = any ? unsignalled(ours, context, false) : 0;
        }
        waiting = now;
    }
    return given_up;
}

// With the lock.
SLUICE_BODY bool SemaphoreWaits::none_for_thread() noexcept {
    for (const Entry& entry : entries_) {
        if (entry.for_thread && !at_least(entry.calls->value(entry.semaphore), entry.value))
            return false;
    }
    is_patient_ = true;
    return true;
}

SLUICE_BODY bool SemaphoreWaits::any_for_thread() noexcept {
    const std::lock_guard lock(mutex_);
    return !none_for_thread();
}

SLUICE_BODY bool SemaphoreWaits::begin_pause() noexcept {
    const std::lock_guard lock(mutex_);
    if (!none_for_thread())
        return false;
    ++pauses_;
    return true;
}

SLUICE_BODY SemaphoreWaits::Pause::Pause(bool wait) noexcept : begun_(instance().begin_pause()) {
    if (!begun_ && wait && instance().let_threads_catch_up())
        begun_ = instance().begin_pause();
}

SLUICE_BODY SemaphoreWaits::Pause::~Pause() {
    if (!begun_)
        return;
    const std::lock_guard lock(instance().mutex_);
    --instance().pauses_;
}

SLUICE_BODY bool SemaphoreWaits::let_threads_catch_up() noexcept {
    bool any = any_for_thread();
    if (!any)
        return true;
    {
        const std::lock_guard lock(mutex_);
        if (!is_patient_ || CallingPipeline::is_in_cpu_stage()) // It may be its own signal.
            return false;
    }
    for (WaitingThread thread(patience); any && thread.goes_on();)
        any = any_for_thread();
    if (any) {
        const std::lock_guard lock(mutex_);
        is_patient_ = false;
    }
    return !any;
}

SLUICE_BODY bool SemaphoreWaits::give_up_around(const void* stream) noexcept {
    // With the lock.
    const Ours around = [](const void* given, const void* other) {
        bool found = given == other;
        for (const Together* all : instance().together_)
            found = found || (all->ours_(all->context_, given) && all->ours_(all->context_, other));
        return found;
    };
    return give_up(around, stream);
}

SLUICE_BODY SemaphoreWaits::Together::Together(Ours ours, const void* context)
    : ours_(ours), context_(context) {
    SemaphoreWaits& waits = instance();
    const std::lock_guard lock(waits.mutex_);
    waits.together_.push_back(this);
}

SLUICE_BODY SemaphoreWaits::Together::~Together() {
    SemaphoreWaits& waits = instance();
    const std::lock_guard lock(waits.mutex_);
    for (const Together*& one : waits.together_) {
        if (one != this)
            continue;
        one = waits.together_.back();
        waits.together_.pop_back();
        break;
    }
}

SLUICE_BODY bool SemaphoreWaits::give_up(const void* stream) noexcept {
    return give_up([](const void* given, const void* other) { return given == other; }, stream);
}

} // namespace sluice::detail

// Threads, and conditions that they wait for: what std::thread and std::condition_variable would be, whose headers take nvcc a fifth of
// what including sluice does.
#pragma once

#include <cstdint>
#include <ctime>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <sched.h>

#include <sluice/backend/detail/clock.hpp>

namespace sluice::detail {

/// A thread, which is joined or let go before this is destroyed.
class Thread {
public:
    Thread() = default;
    /// Calls `work()` there. Throws `std::system_error` where there can be no further thread.
    template <class Work>
    explicit Thread(Work work) {
        auto* const given = new Work(std::move(work));
        const int error = pthread_create(&thread_, nullptr, &run<Work>, given);
        if (error != 0) {
            delete given;
            throw std::system_error(error, std::generic_category());
        }
        joinable_ = true;
    }
    Thread(Thread&& other) noexcept
        : thread_(other.thread_), joinable_(std::exchange(other.joinable_, false)) {}
    Thread& operator=(Thread&& other) noexcept {
        std::swap(thread_, other.thread_);
        std::swap(joinable_, other.joinable_);
        return *this;
    }
    ~Thread() {
        if (joinable_)
            std::terminate();
    }

    bool joinable() const noexcept { return joinable_; }
    void join() noexcept {
        (void)pthread_join(thread_, nullptr);
        joinable_ = false;
    }
    void detach() noexcept {
        (void)pthread_detach(thread_);
        joinable_ = false;
    }

private:
    template <class Work>
    static void* run(void* given) noexcept {
        auto* const work = static_cast<Work*>(given);
        (*work)();
        delete work;
        return nullptr;
    }

    pthread_t thread_{};
    bool joinable_ = false;
};

inline void sleep_thread(std::int64_t nanoseconds) noexcept {
    const std::timespec time{.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
    (void)nanosleep(&time, nullptr);
}

/// Threads wait for it with a mutex locked, which they let go of meanwhile.
class Condition {
public:
    Condition& operator=(Condition&&) = delete;
    ~Condition() { (void)pthread_cond_destroy(&condition_); }

    void notify_one() noexcept { (void)pthread_cond_signal(&condition_); }
    void notify_all() noexcept { (void)pthread_cond_broadcast(&condition_); }
    template <class Until>
    void wait(std::unique_lock<std::mutex>& lock, Until&& until) {
        while (!until())
            (void)pthread_cond_wait(&condition_, lock.mutex()->native_handle());
    }
    /// Whether `until()` holds before the time is over.
    template <class Until>
    bool wait_for(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds time, Until&& until) {
        std::timespec end{};
        (void)clock_gettime(clock, &end);
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
        end.tv_sec += whole.count();
        end.tv_nsec += (time - whole).count();
        if (end.tv_nsec >= 1'000'000'000) {
            end.tv_nsec -= 1'000'000'000;
            ++end.tv_sec;
        }
        while (!until()) {
            if (wait_until(lock.mutex()->native_handle(), end) != 0)
                return until();
        }
        return true;
    }

private:
    // Setting the system's time changes nothing where the library can wait by another clock.
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 30)
    static constexpr clockid_t clock = CLOCK_MONOTONIC;
    int wait_until(pthread_mutex_t* mutex, const std::timespec& end) {
        return pthread_cond_clockwait(&condition_, mutex, clock, &end);
    }
#else
    static constexpr clockid_t clock = CLOCK_REALTIME;
    int wait_until(pthread_mutex_t* mutex, const std::timespec& end) {
        return pthread_cond_timedwait(&condition_, mutex, &end);
    }
#endif

    pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
};

} // namespace sluice::detail

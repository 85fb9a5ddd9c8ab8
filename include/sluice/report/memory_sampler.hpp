/// \file
/// How much device memory is in use, over time.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sluice/backend/concept.hpp>
#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/report/timeline.hpp>

namespace sluice {

/// Asks how much of a device's memory is in use, every so often, on a thread of its own, from its construction until `stop`.
/// What the number means is said at `MemoryUseBackend`. Between two samples memory may rise and fall unseen.
///
/// Only changes are kept, so that it may run for hours. No stream waits for it. Any thread may call it.
///
///     sluice::MemorySampler<sluice::Cuda> memory;
///     … // a pipeline runs, and finishes
///     sluice::Timeline timeline = sluice::timeline_of(pipeline);
///     memory.add_to(timeline);
template <MemoryUseBackend B>
class MemorySampler {
public:
    using Clock = std::chrono::steady_clock; ///< What its times are of.

    /// Samples the calling thread's current device. The first sample is taken before it returns.
    /// \throws Error for an interval that is not positive, and what the backend throws when it is asked.
    explicit MemorySampler(std::chrono::microseconds every = std::chrono::milliseconds(5)) : every_(every) {
        constexpr std::chrono::microseconds year = std::chrono::hours(24 * 365); // as other waits at most
        detail::require_within("MemorySampler: the interval in us", every.count(), 1, year.count());
        note(B::device_memory_in_use());
        thread_ = std::thread([this, device = B::current_device()] { sample(device); });
    }
    MemorySampler(const MemorySampler&) = delete;
    MemorySampler& operator=(const MemorySampler&) = delete;
    /// Stops.
    ~MemorySampler() { stop(); }

    /// Takes a last sample and ends the thread. Does nothing the second time.
    void stop() noexcept {
        std::thread ended;
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
            std::swap(ended, thread_);
        }
        wake_.notify_all();
        if (ended.joinable())
            ended.join();
    }

    /// The most that was seen so far, in bytes.
    std::size_t peak() const {
        const std::lock_guard lock(mutex_);
        return peak_;
    }
    /// How many samples have been taken so far.
    std::size_t samples() const {
        const std::lock_guard lock(mutex_);
        return samples_;
    }

    /// Adds what was sampled so far to `timeline`, as a counter in bytes, and returns the counter's number. `zero` is the
    /// timeline's zero. \throws Error what the backend threw when it was asked on the sampler's thread, which ended it.
    std::size_t add_to(Timeline& timeline, Clock::time_point zero, std::string name = "device memory") const {
        const std::lock_guard lock(mutex_);
        if (failure_)
            std::rethrow_exception(failure_);
        const std::size_t counter = timeline.add_counter(std::move(name), "B");
        for (const Sample& sample : kept_) {
            const std::chrono::duration<double, std::micro> time = sample.time - zero;
            timeline.add_value(counter, time.count(), static_cast<double>(sample.bytes));
        }
        return counter;
    }

    /// The same for a timeline whose zero is known (`Timeline::clock_zero`), as that of a pipeline is: what was sampled
    /// between the timeline's first begin and last end, and before them what held at the begin. Throws likewise, and `Error`
    /// where the timeline has spans and does not know its zero.
    std::size_t add_to(Timeline& timeline, std::string name = "device memory") const {
        const std::lock_guard lock(mutex_);
        if (failure_)
            std::rethrow_exception(failure_);
        if (!timeline.spans().empty() && timeline.clock_zero() == 0) {
            throw Error("MemorySampler::add_to: the timeline '" + timeline.title() +
                        "' does not say where its zero is on the steady clock; take it from timeline_of, "
                        "call Timeline::set_clock_zero, or give the zero: add_to(timeline, zero)");
        }
        const std::size_t counter = timeline.add_counter(std::move(name), "B");
        const double begin = timeline.begin();
        const double end = timeline.end();
        const Sample* held = nullptr;
        const auto add_held = [&](const Sample* sample) {
            if (sample != nullptr)
                timeline.add_value(counter, begin, static_cast<double>(sample->bytes));
        };
        bool begun = false;
        for (const Sample& sample : kept_) {
            const std::chrono::duration<double, std::micro> clock = sample.time.time_since_epoch();
            const double time = clock.count() - timeline.clock_zero();
            if (time > end)
                break;
            if (time >= begin) {
                if (!begun)
                    add_held(held);
                begun = true;
                timeline.add_value(counter, time, static_cast<double>(sample.bytes));
            }
            held = &sample;
        }
        if (!begun)
            add_held(held);
        return counter;
    }

private:
    struct Sample {
        Clock::time_point time;
        std::size_t bytes;
    };

    void sample(int device) noexcept {
        try {
            B::set_device(device);
            for (bool last = false; !last;) {
                {
                    std::unique_lock lock(mutex_);
                    last = wake_.wait_for(lock, every_, [this] { return stopping_; });
                }
                note(B::device_memory_in_use());
            }
        } catch (...) {
            const std::lock_guard lock(mutex_);
            failure_ = std::current_exception();
        }
    }

    // Of equal samples in a row the first and the last are kept: the last says how long it was so.
    void note(std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        const std::size_t count = kept_.size();
        if (count >= 2 && kept_[count - 1].bytes == bytes && kept_[count - 2].bytes == bytes)
            kept_.pop_back();
        kept_.push_back({Clock::now(), bytes});
        peak_ = bytes > peak_ ? bytes : peak_;
        ++samples_;
    }

    const std::chrono::microseconds every_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::thread thread_;
    bool stopping_ = false;
    std::vector<Sample> kept_;
    std::size_t peak_ = 0;
    std::size_t samples_ = 0;
    std::exception_ptr failure_;
};

} // namespace sluice

/// \file
/// Steps on one stream as a timeline: when the host enqueued each, and when the device ran it.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/event.hpp>
#include <sluice/report/timeline.hpp>

namespace examples {

/// Notes the last of many steps. Two timing events are recorded for each that is noted, which were made before.
template <sluice::Backend B>
class StepTimes {
public:
    /// Notes the last `noted` of `steps` steps; nothing if that is 0. All work on `stream` must be done.
    StepTimes(sluice::BasicStreamRef<B> stream, std::size_t steps, std::size_t noted)
        : stream_(stream), first_(steps > noted ? steps - noted : 0), steps_(noted > 0 ? steps : 0) {
        for (std::size_t i = 0; noted > 0 && i < 2 * (steps - first_) + 1; ++i)
            events_.emplace_back(sluice::EventOptions{.timing = true});
        if (events_.empty())
            return;
        // On an idle stream both clocks begin here.
        events_[0].record(stream_);
        zero_ = Clock::now();
    }

    /// Calls `enqueue()`, which enqueues the next step.
    template <class Enqueue>
    void step(Enqueue&& enqueue) {
        const std::size_t number = next_++;
        if (number < first_ || number >= steps_)
            return enqueue();
        const std::size_t at = 2 * (number - first_) + 1;
        host_.push_back(now());
        events_[at].record(stream_);
        enqueue();
        events_[at + 1].record(stream_);
        host_.push_back(now());
    }

    /// What was noted. Its zero is the first step's that was noted. All work must be done.
    [[nodiscard]] sluice::Timeline timeline(std::string title) const {
        sluice::Timeline timeline(std::move(title));
        const std::string backend = B::name;
        const std::size_t host = timeline.add_row("enqueue", "CPU");
        const std::size_t device = timeline.add_row("step", (backend == "cuda" ? "GPU " : backend + " ") +
                                                                std::to_string(B::device_of(stream_.get())));
        const double zero = host_.empty() ? 0 : host_[0];
        const std::chrono::duration<double, std::micro> clock = zero_.time_since_epoch();
        timeline.set_clock_zero(clock.count() + zero);
        for (std::size_t i = 0; i + 1 < host_.size(); i += 2) {
            timeline.add({host, first_ + i / 2, host_[i] - zero, host_[i + 1] - zero});
            const double begin = since_zero(events_[i + 1]);
            const double end = since_zero(events_[i + 2]);
            timeline.add({device, first_ + i / 2, begin - zero, (end > begin ? end : begin) - zero});
        }
        return timeline;
    }

private:
    using Clock = std::chrono::steady_clock;

    [[nodiscard]] double now() const {
        return std::chrono::duration<double, std::micro>(Clock::now() - zero_).count();
    }
    [[nodiscard]] double since_zero(const sluice::BasicEvent<B>& event) const {
        return 1000 * static_cast<double>(sluice::elapsed_milliseconds(events_[0], event));
    }

    sluice::BasicStreamRef<B> stream_;
    std::size_t first_;
    std::size_t steps_;
    std::size_t next_ = 0;
    std::vector<sluice::BasicEvent<B>> events_; ///< The zero, then two a step.
    std::vector<double> host_;                  ///< Microseconds, two a step.
    Clock::time_point zero_;
};

} // namespace examples

/// \file
/// The streams that a pipeline's stages run on.
#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/schedule.hpp>
#include <sluice/pipeline/stage.hpp>

namespace sluice::detail {

/// One stream a stage, owned or lent; under `Schedule::serial` all stages share the first one's.
template <Backend B>
class StreamSet {
public:
    using Ref = BasicStreamRef<B>;

    explicit StreamSet(Schedule schedule) : schedule_(schedule), device_(B::current_device()) {}

    /// Adds the stream of the next stage.
    void add(const std::string& stage, const StageOptions<B>& options) {
        if (options.stream) {
            const std::string what = "stage '" + stage + "': the lent stream";
            require_own_device(*options.stream, what.c_str());
            lent_.push_back(*options.stream);
        }
        if (schedule_ == Schedule::serial && !of_stage_.empty()) {
            of_stage_.push_back(of_stage_.front());
            return;
        }
        if (options.stream) {
            of_stage_.push_back(*options.stream);
        } else {
            owned_.emplace_back(StreamOptions{.priority = options.priority});
            of_stage_.push_back(owned_.back());
        }
        active_.push_back(of_stage_.back());
    }

    Ref operator[](std::size_t stage) const noexcept { return of_stage_[stage]; }
    int device() const noexcept { return device_; }

    /// Orders the stages' later work after what is on the lent streams now.
    void join_lent() {
        for (const Ref lent : lent_)
            join(lent);
    }
    /// Orders later work on the lent streams after what the stages have been handed.
    void release_to_lent() {
        for (const Ref lent : lent_)
            release_to(lent);
    }
    /// Orders the stages' later work after what is on `stream` now.
    void join(Ref stream) {
        fence_.record(stream);
        for (const Ref active : active_) {
            if (active != stream)
                active.wait(fence_);
        }
    }
    /// Orders later work on `stream` after what the stages have been handed.
    void release_to(Ref stream) {
        for (const Ref active : active_) {
            if (active == stream)
                continue;
            // A wait keeps to the record that it saw, so that one event serves all of them.
            fence_.record(active);
            stream.wait(fence_);
        }
    }

    /// Throws the fault of any stream that is known without waiting.
    void throw_if_failed() const {
        for (const Ref active : active_)
            B::throw_if_failed(active.native());
    }
    /// Waits for all work; throws the first fault after all streams have been waited for.
    void synchronize() const {
        std::exception_ptr first; // Whole, with what is nested in it.
        for (const Ref active : active_) {
            try {
                active.synchronize();
            } catch (...) {
                if (first == nullptr)
                    first = std::current_exception();
            }
        }
        if (first != nullptr)
            std::rethrow_exception(first);
    }
    /// Waits for all work, whatever becomes of it.
    void drain() const noexcept {
        for (const Ref active : active_) {
            try {
                active.synchronize();
            } catch (...) {
                // Whoever drains already has an error to report, or is a destructor.
            }
        }
    }
    void clear_failures() const noexcept {
        for (const Ref active : active_)
            B::clear_failure(active.native());
    }

    /// Throws `Error` for a stream of another device's. Allocates nothing for one of its own.
    void require_own_device(Ref stream, const char* what) const {
        const int device = stream.device();
        if (device == device_)
            return;
        throw Error(std::string(what) + " belongs to device " + std::to_string(device) +
                    ", the pipeline to device " + std::to_string(device_) +
                    "; both must be the same device's");
    }

private:
    Schedule schedule_;
    int device_;
    std::vector<BasicStream<B>> owned_;
    std::vector<Ref> of_stage_;
    std::vector<Ref> active_;
    std::vector<Ref> lent_;
    BasicEvent<B> fence_;
};

} // namespace sluice::detail

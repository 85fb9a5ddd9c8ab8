// An event for streams of any device.
#pragma once

#include <exception>
#include <optional>

#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice::detail {

/// An event that follows the streams that it is recorded on: an event of a backend belongs to one device. No stream or thread may
/// still wait for a record when the next one is on another device.
template <Backend B>
class DeviceEvent {
public:
    /// For streams of the current device at first.
    explicit DeviceEvent(const EventOptions& options = {})
        : options_(options), device_(B::current_device()), event_(options) {}

    void record(BasicStreamRef<B> stream) {
        // Asking for a stream's device takes time: it stays what it is.
        if (!(last_ && *last_ == stream)) {
            follow(stream.device());
            last_ = stream;
        }
        event_.record(stream);
    }
    void sync() const { event_.sync(); }
    bool is_done() const { return event_.is_done(); }
    /// The same where the fault of the work before is somebody else's to report: that work is over then, too.
    bool is_over() const noexcept {
        try {
            return is_done();
        } catch (...) {
            return true;
        }
    }
    /// For destructors: waits, whatever becomes of the work. Behind an exception not for semaphores that will not be signalled.
    void settle() const noexcept {
        try {
            if constexpr (SemaphoreCalls<B>::there) {
                if (std::uncaught_exceptions() != 0 && last_ && !event_.is_done()) [[unlikely]]
                    SemaphoreWaits::instance().give_up_around(last_->get());
            }
            event_.sync();
        } catch (...) {
            // The stream has failed, and the next wait for it reports the error.
        }
    }

private:
    void follow(int device) {
        if (device == device_)
            return;
        const DeviceGuard<B> guard(device);
        event_ = BasicEvent<B>(options_);
        device_ = device;
    }

    EventOptions options_;
    int device_;
    BasicEvent<B> event_;
    std::optional<BasicStreamRef<B>> last_;
};

/// `work` hands work to `stream`, and at last has an event tell of its end. Where it throws, none will, and what that work uses must
/// not go or change before: then it waits for the stream.
template <Backend B, class Work>
void or_synced(BasicStreamRef<B> stream, Work&& work) {
    try {
        work();
    } catch (...) {
        try {
            stream.sync();
        } catch (...) {
            // The stream has failed, and what `work` threw says so.
        }
        throw;
    }
}

} // namespace sluice::detail

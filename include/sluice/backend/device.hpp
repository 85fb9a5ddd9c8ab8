/// \file
/// The calling thread's current device.
#pragma once

#include <sluice/backend/default.hpp>

namespace sluice {

/// Makes `device` the calling thread's current one, and the former one current again at the end of the scope.
/// Touches the runtime only where the two differ.
template <Backend B = DefaultBackend>
class DeviceGuard {
public:
    /// Throws `Error` if there is no such device.
    [[nodiscard("without a name it goes at once")]] explicit DeviceGuard(int device)
        : former_(B::current_device()), changed_(former_ != device) {
        if (changed_)
            B::set_device(device);
    }
    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;
    ~DeviceGuard() {
        if (!changed_)
            return;
        try {
            B::set_device(former_);
        } catch (...) {
            // The former device was current a moment ago; a destructor cannot report that it is lost.
        }
    }

private:
    int former_;
    bool changed_;
};

} // namespace sluice

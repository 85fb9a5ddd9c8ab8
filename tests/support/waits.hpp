// Whether a call waits for work that is held up.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/gate.hpp"
#include "support/hooked_backend.hpp"
#include "support/latch.hpp"

namespace sluice::test {

/// Calls `call()` with `gate` shut, which opens a little later, and says whether the call returned after that. A call that
/// waits does, however busy the machine is; one that does not is nearly always back before.
template <Backend B, class Call>
bool returns_after_opening(Gate<B>& gate, Call&& call) {
    std::atomic<bool> opened{false};
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(15));
        opened = true;
        gate.open();
    });
    call();
    const bool after = opened;
    opener.join();
    return after;
}

/// The same for a latch that the work waits at.
template <class Call>
bool returns_after_opening(const Latch& latch, Call&& call) {
    std::atomic<bool> opened{false};
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(15));
        opened = true;
        latch.open();
    });
    call();
    const bool after = opened;
    opener.join();
    return after;
}

/// Notes the names of a backend's functions in the order in which they are called, by any thread.
class CallNotes {
public:
    template <class>
    static void before(const char* function) {
        add(function);
    }
    template <class, class Native>
    static void before(const char* function, Native) {
        add(function);
    }

    static void clear() {
        const std::lock_guard lock(mutex());
        all().clear();
    }
    /// Whether `later` was called, and after the last call of `earlier`.
    static bool after(std::string_view earlier, std::string_view later) {
        const std::lock_guard lock(mutex());
        bool found = false;
        for (const std::string& name : all()) {
            if (name == later)
                found = true;
            else if (name == earlier)
                found = false;
        }
        return found;
    }

private:
    static void add(const char* function) {
        const std::lock_guard lock(mutex());
        all().emplace_back(function);
    }
    static std::mutex& mutex() {
        static std::mutex value;
        return value;
    }
    static std::vector<std::string>& all() {
        static std::vector<std::string> value;
        return value;
    }
};

/// Notes calls that have no effect to see on the Host backend, whose streams end only when their work has.
template <Backend B>
using Noting = Hooked<B, CallNotes>;

} // namespace sluice::test

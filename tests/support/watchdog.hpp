// For what may hang within a driver, where no thread can be ended alone.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "support/latch.hpp"

namespace sluice::test {

/// Ends the program where the test hangs: a thread that waits within the driver cannot be ended alone.
class Watchdog {
public:
    explicit Watchdog(std::string what)
        : thread_([this, what = std::move(what)] {
              std::unique_lock lock(mutex_);
              if (!changed_.wait_for(lock, patience, [this] { return is_over_; })) {
                  std::fprintf(stderr, "%s: hangs\n", what.c_str());
                  std::_Exit(1);
              }
          }) {}
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;
    ~Watchdog() {
        {
            const std::lock_guard lock(mutex_);
            is_over_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_over_ = false;
    std::thread thread_; // last, since it uses the others
};

} // namespace sluice::test

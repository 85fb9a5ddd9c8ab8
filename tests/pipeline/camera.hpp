// A live input that a test drives: it takes a picture when the test lets it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "support/latch.hpp"

namespace sluice::test {

/// A camera that takes as many pictures as it is let.
class Camera {
public:
    void let(std::size_t pictures) {
        {
            const std::lock_guard lock(mutex_);
            let_ += pictures;
        }
        changed_.notify_all();
    }
    /// Called in `fill`.
    void take() {
        std::unique_lock lock(mutex_);
        ++asked_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return taken_ < let_; });
        ++taken_;
    }
    /// Whether it is asked for `pictures`, the last of which it has not been let take.
    bool is_asked_for(std::size_t pictures) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, patience, [&] { return asked_ == pictures; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t let_ = 0, asked_ = 0, taken_ = 0;
};

/// Lets the camera go on at the end, whatever becomes of the test.
struct LetGo {
    Camera& camera;
    ~LetGo() { camera.let(1'000'000); }
};

} // namespace sluice::test

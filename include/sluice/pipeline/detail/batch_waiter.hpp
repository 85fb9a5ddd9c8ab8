/// \file
/// What a pipeline shares with those who wait for its batches.
#pragma once

#include <cstddef>
#include <exception>
#include <utility>

#include <sluice/backend/config.hpp>

namespace sluice::detail {

class BatchWaiterRef;

/// What a pipeline lends to those who wait for its batches; `pipeline` is null once it has gone.
struct BatchWaiter {
    void* pipeline = nullptr;
    void (*wait)(void* pipeline, std::size_t run, std::size_t number) = nullptr;
    bool (*is_read)(void* pipeline, std::size_t run, std::size_t number) = nullptr;
    void (*stays)(void* pipeline, std::size_t run, std::size_t number) = nullptr; // where that is checked
    bool (*drain)(void* pipeline) =
        nullptr;                   // where that has failed; whether waits for semaphores were given up
    std::size_t references = 0;    // One thread has them all.
    std::exception_ptr unreported; // What a destructor's wait has thrown, for the pipeline's next call.

    static BatchWaiterRef make();
};

/// A shared pointer without atomics.
class BatchWaiterRef {
public:
    BatchWaiterRef() = default;
    explicit BatchWaiterRef(BatchWaiter* waiter) noexcept : waiter_(waiter) { ++waiter_->references; }
    BatchWaiterRef(const BatchWaiterRef& other) noexcept : waiter_(other.waiter_) {
        if (waiter_ != nullptr)
            ++waiter_->references;
    }
    BatchWaiterRef(BatchWaiterRef&& other) noexcept : waiter_(std::exchange(other.waiter_, nullptr)) {}
    BatchWaiterRef& operator=(BatchWaiterRef other) noexcept {
        std::swap(waiter_, other.waiter_);
        return *this;
    }
    ~BatchWaiterRef() {
        if (waiter_ != nullptr && --waiter_->references == 0)
            delete waiter_;
    }
    BatchWaiter* operator->() const noexcept { return waiter_; }
    BatchWaiter& operator*() const noexcept { return *waiter_; }
    SLUICE_ALWAYS_INLINE explicit operator bool() const noexcept { return waiter_ != nullptr; }

private:
    BatchWaiter* waiter_ = nullptr;
};

inline BatchWaiterRef BatchWaiter::make() { return BatchWaiterRef(new BatchWaiter); }

} // namespace sluice::detail

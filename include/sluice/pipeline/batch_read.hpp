/// \file
/// When a submitted batch has been read.
#pragma once

#include <cstddef>
#include <exception>
#include <utility>

#include <sluice/backend/config.hpp>

namespace sluice {

namespace detail {

/// What a pipeline lends to those who wait for its batches; `pipeline` is null once it has gone.
struct BatchWaiter {
    void* pipeline = nullptr;
    void (*wait)(void* pipeline, std::size_t run, std::size_t number) = nullptr;
    std::size_t references = 0;    // One thread has them all.
    std::exception_ptr unreported; // What a destructor's wait has thrown, for the pipeline's next call.

    static class BatchWaiterRef make();
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
    explicit operator bool() const noexcept { return waiter_ != nullptr; }

private:
    BatchWaiter* waiter_ = nullptr;
};

inline BatchWaiterRef BatchWaiter::make() { return BatchWaiterRef(new BatchWaiter); }

} // namespace detail

/// What `submit` returns of a batch of the caller's own: tells when all stages that take the batch have read it, and so
/// when its memory may be filled again.
///
/// Destroying it waits as well where the batch might be filled again: if it was submitted as something that is not
/// `const` and has pinned memory. So a loop that fills one batch again and again is right as it stands, and one that
/// keeps what `submit` returns and fills two batches in turns overlaps. Numbers, device memory and batches of a `Source`
/// are never waited for. A fault that the destructor meets is thrown by the next call of the pipeline.
///
/// Used by the thread that drives the pipeline, which it may outlive.
///
/// \code
/// sluice::BatchRead read[2];
/// for (int step = 0; step < steps; ++step) {
///     read[step % 2].wait(); // of two steps ago
///     load(step, batch[step % 2]);
///     read[step % 2] = pipeline.submit(batch[step % 2]);
/// }
/// \endcode
class BatchRead {
public:
    /// Of no batch: nothing to wait for.
    BatchRead() = default;
    BatchRead(detail::BatchWaiterRef waiter, std::size_t run, std::size_t number,
              bool waits_in_destructor) noexcept
        : waiter_(std::move(waiter)), run_(run), number_(number), waits_(waits_in_destructor) {}

    BatchRead(BatchRead&& other) noexcept = default;
    BatchRead& operator=(BatchRead&& other) noexcept {
        if (this != &other) {
            wait_quietly();
            waiter_ = std::move(other.waiter_);
            run_ = other.run_;
            number_ = other.number_;
            waits_ = other.waits_;
        }
        return *this;
    }
    ~BatchRead() { wait_quietly(); }

    /// Waits until the batch has been read. Sends held batches on their way, as `flush` does, where it is one of them.
    /// Throws `Error` for a fault of that work.
    void wait() {
        const detail::BatchWaiterRef waiter = std::move(waiter_);
        if (waiter && waiter->pipeline != nullptr)
            waiter->wait(waiter->pipeline, run_, number_);
    }

private:
    void wait_quietly() noexcept {
        if (!waiter_ || !waits_)
            return;
        const detail::BatchWaiterRef waiter = waiter_;
        try {
            wait();
        } catch (...) {
            waiter->unreported = std::current_exception();
        }
    }

    detail::BatchWaiterRef waiter_;
    std::size_t run_ = 0;
    std::size_t number_ = 0;
    bool waits_ = false;
};

} // namespace sluice

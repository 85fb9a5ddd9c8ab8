/// \file
/// When a submitted batch has been read.
#pragma once

#include <cstddef>

#include <sluice/backend/concept.hpp>
#include <sluice/pipeline/detail/batch_waiter.hpp>

namespace sluice {

namespace detail {
template <Backend B>
class PipelineCore;
} // namespace detail

/// What `submit` returns of a batch of the caller's own: tells when all stages that take the batch have read it, and so
/// when its memory may be filled again. Not before: under `Schedule::graphed` a batch may be held, and read long after `submit`
/// has returned. On a checked backend (backend/checked.hpp) a change before that is an `Error` of the next call.
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
    /// Leaves nothing to wait for behind.
    BatchRead(BatchRead&& other) noexcept = default;
    /// Waits first where the destructor would.
    BatchRead& operator=(BatchRead&& other) noexcept;
    /// Waits where the batch might be filled again.
    ~BatchRead() { wait_quietly(); }

    /// Waits until the batch has been read. Sends held batches on their way, as `flush` does, where it is one of them.
    /// Throws `Error` for a fault of that work.
    void wait();

private:
    template <Backend B>
    friend class detail::PipelineCore;
    BatchRead(const detail::BatchWaiterRef& waiter, std::size_t run, std::size_t number,
              bool waits_in_destructor) noexcept
        : waiter_(waiter), run_(run), number_(number), waits_(waits_in_destructor) {}
    void wait_quietly() noexcept;
    void wait_by(const detail::BatchWaiter& waiter) const;

    detail::BatchWaiterRef waiter_;
    std::size_t run_ = 0;
    std::size_t number_ = 0;
    bool waits_ = false;
};

} // namespace sluice

#include <sluice/pipeline/detail/batch_read.inl>

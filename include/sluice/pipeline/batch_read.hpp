/// \file
/// When a submitted batch has been read.
#pragma once

#include <cstddef>
#include <optional>

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
/// Three things can be done with it:
///
/// | the batch | |
/// | --- | --- |
/// | is filled again at once | `pipeline.submit(batch).wait();` the host waits, and enqueues nothing meanwhile |
/// | stays as it is until `finish` | `pipeline.submit(batch).stays();` the host does not wait |
/// | is one of several that are filled in turns | keep it, and call `wait` before that batch is filled again |
///
/// Destroying it waits as well, where the batch names host memory as far as can be seen (`NamesHostMemory`), and the
/// compiler warns where it is dropped at once. Numbers and device memory are never waited for, nor what lies behind a plain
/// pointer; `submit` of a `Source`'s batch returns nothing, as there is nothing to see to. A fault that the destructor
/// meets is thrown by the next call of the pipeline.
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
    /// Waits where the batch names host memory.
    ~BatchRead() {
        if (waits_ && waiter_)
            wait_quietly();
    }

    /// Waits until the batch has been read. Sends held batches on their way, as `flush` does, where it is one of them.
    /// Throws `Error` for a fault of that work.
    void wait();

    /// Whether the batch has been read, without a wait: then `wait` would return at once. Where the pipeline has failed, and
    /// of no batch, too. False for a batch that is held under `Schedule::graphed`; asked for the same one again with nothing
    /// submitted in between, it is sent on its way, as by `flush`. Throws `Error` for a known fault.
    bool is_ready() const;

    /// Promises that the batch, and the memory that it names, stays as it is until the pipeline's next `finish` or
    /// `reset`: nothing waits for it any more. On a checked backend a change before the stages have read it is an `Error`
    /// of a later call.
    void stays() noexcept;

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

/// What `try_submit` returns of a batch that names host memory: its `BatchRead`, or nothing where it was not taken. It is to be kept,
/// since the destructor of a `BatchRead` waits for its batch: asking a temporary one whether the batch was taken does not compile.
class TriedSubmit : public std::optional<BatchRead> {
public:
    using std::optional<BatchRead>::optional;
    /// Whether the batch was taken.
    explicit operator bool() const& noexcept { return has_value(); }
    /// Does not compile: write `if (auto read = pipeline.try_submit(batch))`, and keep what it has.
    explicit operator bool() const&& = delete;
};

} // namespace sluice

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/pipeline/detail/batch_read.inl>
#endif

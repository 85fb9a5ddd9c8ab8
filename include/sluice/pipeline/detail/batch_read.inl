// Bodies of batch_read.hpp.
#pragma once

#include <exception>
#include <utility>

#include <sluice/backend/error.hpp>
#include <sluice/graph/detail/not_capturable.hpp>

namespace sluice {

SLUICE_BODY BatchRead& BatchRead::operator=(BatchRead&& other) noexcept {
    if (this != &other) {
        if (waits_ && waiter_)
            wait_quietly();
        waiter_ = std::move(other.waiter_);
        run_ = other.run_;
        number_ = other.number_;
        waits_ = other.waits_;
    }
    return *this;
}

SLUICE_BODY void BatchRead::wait() {
    detail::BatchWaiterRef waiter = std::move(waiter_);
    try {
        if (waiter && waiter->pipeline != nullptr && !waiter->wait(waiter->pipeline, run_, number_))
            [[unlikely]] {
            waiter_ = std::move(waiter); // is still to be waited for
            throw_in_use();
        }
    } catch (const detail::NotCapturable&) {
        waiter_ = std::move(waiter); // likewise
        throw;
    }
}

SLUICE_BODY bool BatchRead::is_ready() const {
    return !waiter_ || waiter_->pipeline == nullptr || waiter_->is_read(waiter_->pipeline, run_, number_);
}

SLUICE_BODY void BatchRead::stays() noexcept {
    const detail::BatchWaiterRef waiter = std::move(waiter_);
    if (waiter && waiter->pipeline != nullptr && waiter->stays != nullptr)
        waiter->stays(waiter->pipeline, run_, number_);
}

// One reference alone: of several, GCC 12 takes one to be the last, and warns of the others in users' programs.
SLUICE_BODY void BatchRead::wait_quietly() noexcept {
    const detail::BatchWaiterRef waiter = std::move(waiter_);
    try {
        // Behind an exception a stage may wait for a semaphore that will not be signalled.
        if (std::uncaught_exceptions() != 0 && waiter->pipeline != nullptr && waiter->drain(waiter->pipeline))
            throw Error("while an exception passed, a stage waited for a semaphore that was not signalled, "
                        "and the wait was given up: what its stream did next may have come too early");
        if (waiter->pipeline != nullptr && !waiter->wait(waiter->pipeline, run_, number_))
            throw_in_use();
    } catch (...) {
        waiter->unreported = std::current_exception();
        if (waiter->pipeline != nullptr)
            waiter->drain(waiter->pipeline);
    }
}

SLUICE_BODY void BatchRead::throw_in_use() {
    throw Error("wait: the batch's pipeline is in use, by another thread or by the stage that asks; wait for "
                "a batch on the thread that drives its pipeline, between that one's calls");
}

} // namespace sluice

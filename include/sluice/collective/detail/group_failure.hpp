// Why a group of ranks has failed.
#pragma once

#include <string>

#include <sluice/backend/error.hpp>
#include <sluice/collective/detail/call.hpp>

namespace sluice::detail {

/// The first reason that a group of ranks, or one of them, has failed for; later ones follow from it. Not locked.
class GroupFailure {
public:
    explicit operator bool() const noexcept { return failed_; }
    const std::string& reason() const noexcept { return reason_; }

    void set(const std::string& reason) noexcept {
        if (failed_)
            return;
        failed_ = true;
        try {
            reason_ = reason;
        } catch (...) {
            // Without memory for it, the failure alone has to do.
        }
    }

    /// As rank `rank` of `ranks` tells of it.
    Error error(int rank, int ranks) const {
        return Error("collective on " + rank_text(rank, ranks) + ": " + reason_);
    }
    void throw_if_set(int rank, int ranks) const {
        if (failed_)
            throw error(rank, ranks);
    }

private:
    bool failed_ = false;
    std::string reason_;
};

} // namespace sluice::detail

// Events that cannot be recorded.
#pragma once

#include <atomic>
#include <string_view>

#include <sluice/backend/error.hpp>

#include "support/hooked_backend.hpp"

namespace sluice::test {

/// A hook for `Hooked`: records throw as long as `fail` says so.
struct NoRecords {
    static inline std::atomic<bool> fail{false};

    template <class>
    static void before(const char*) {}
    template <class, class Native>
    static void before(const char* function, Native) {
        if (fail && std::string_view(function) == "record")
            throw Error("no record today");
    }
};

/// Within it, records throw.
struct RecordsFail {
    RecordsFail() { NoRecords::fail = true; }
    RecordsFail(const RecordsFail&) = delete;
    RecordsFail& operator=(const RecordsFail&) = delete;
    ~RecordsFail() { NoRecords::fail = false; }
};

} // namespace sluice::test

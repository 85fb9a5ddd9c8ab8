// A backend whose streams are late at random.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include <sluice/backend/detail/capture_ledger.hpp>
#include <sluice/random/philox.hpp>

#include "support/hooked_backend.hpp"
#include "support/stream_ops.hpp"

namespace sluice::test {

/// Enqueues a delay of random length before some of the records, waits and copies. Which ones, and for how
/// long, depends on the seed and on the number of such calls so far.
class Delay {
public:
    struct Settings {
        std::uint64_t seed = 0;
        std::uint32_t one_in = 4;         ///< One call of so many gets a delay; 0: none does.
        std::uint32_t microseconds = 500; ///< Longer than any delay.
    };

    /// Starts anew with `settings`.
    static void set(const Settings& settings) {
        current() = settings;
        calls() = 0;
    }

    template <class B>
    static void before(const char* function) {
        if (std::string_view(function) == "begin_capture")
            captured() = 0;
    }
    template <class B>
    static void before(const char*, typename B::NativeEvent) {}
    template <class B>
    static void before(const char* function, typename B::NativeStream stream) {
        const std::string_view called = function;
        if (current().one_in == 0 || (called != "record" && called != "wait" && called != "copy"))
            return;
        // A stream joins a capture by its first wait there: work before that would run now, outside of it.
        if (called == "wait" && detail::capture_ledger().depth > 0)
            return;
        // Work that is captured again must be the same.
        const bool captures = detail::capture_ledger().depth > 0;
        CountedRandom random({.seed = current().seed,
                              .epoch = captures ? 1U : 0U,
                              .sample = captures ? captured()++ : calls()++});
        if (random.below(current().one_in) == 0)
            ops::spin(stream, random.below(current().microseconds));
    }

private:
    static Settings& current() {
        static Settings settings;
        return settings;
    }
    static std::uint64_t& captured() {
        thread_local std::uint64_t value = 0;
        return value;
    }
    static std::atomic<std::uint64_t>& calls() {
        static std::atomic<std::uint64_t> value{0};
        return value;
    }
};

/// Streams are late as `Delay::set` says.
template <Backend B>
using Delayed = Hooked<B, Delay>;

static_assert(Backend<Delayed<Host>>);

} // namespace sluice::test

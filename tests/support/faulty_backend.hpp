// A backend of which one call fails.
#pragma once

#include <atomic>
#include <limits>
#include <string>
#include <string_view>

#include "support/hooked_backend.hpp"

namespace sluice::test {

/// Makes the k-th call throw, instead of what it would do; only waits are carried out first, for a wait that
/// reports a failure has come to its end. Counts the calls of all `Faulty` backends and threads together.
class Fault {
public:
    static constexpr const char* name = "injectedFault";

    /// The `call`-th call from now on, counted from 1, throws; and all later ones if `for_good`, as after the
    /// loss of a device.
    static void arm(long call, bool for_good = false) {
        calls() = 0;
        last() = for_good ? std::numeric_limits<long>::max() : call;
        first() = call;
    }
    /// No further call throws.
    static void disarm() { first() = std::numeric_limits<long>::max(); }

    /// Calls since `arm`. The fault has been thrown if there are at least as many as the call that was armed.
    static long calls_made() { return calls(); }

    template <class B>
    static void before(const char* function) {
        count<B>(function, [] {});
    }
    template <class B>
    static void before(const char* function, typename B::NativeStream stream) {
        count<B>(function, [=] {
            if (std::string_view(function) == "synchronize_stream")
                B::synchronize_stream(stream);
        });
    }
    template <class B>
    static void before(const char* function, typename B::NativeEvent event) {
        count<B>(function, [=] {
            if (std::string_view(function) == "synchronize_event")
                B::synchronize_event(event);
        });
    }

private:
    template <class B, class Wait>
    static void count(const char* function, Wait&& wait) {
        const long call = ++calls();
        if (call < first() || call > last())
            return;
        wait();
        throw Error(std::string(B::name) + "::" + function, name, "injected at call " + std::to_string(call),
                    __FILE__, __LINE__);
    }
    static std::atomic<long>& calls() {
        static std::atomic<long> value{0};
        return value;
    }
    static std::atomic<long>& first() {
        static std::atomic<long> value{std::numeric_limits<long>::max()};
        return value;
    }
    static std::atomic<long>& last() {
        static std::atomic<long> value{0};
        return value;
    }
};

/// The k-th call of a function that may throw throws `Error`, as `Fault::arm` says.
template <Backend B>
using Faulty = Hooked<B, Fault>;

static_assert(Backend<Faulty<Host>>);

} // namespace sluice::test

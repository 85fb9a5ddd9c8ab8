// A backend on which launches can fail, as a device's do: the error is kept until it is asked for.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "support/hooked_backend.hpp"

namespace sluice::test {

/// Keeps the error of a launch until the next `check_launches`, which throws it once, as CUDA's last error.
class Launches {
public:
    static constexpr const char* name = "refusedLaunch";

    /// A launch that is refused, of the calling thread.
    static void refuse() { left() = true; }
    /// Whether an error was not asked for yet. Forgets it.
    static bool left_behind() { return std::exchange(left(), false); }

    template <class B>
    static void before(const char* function) {
        if (std::string_view(function) == "check_launches" && left_behind())
            throw Error(std::string(B::name) + "::check_launches", name, "a launch was refused", __FILE__,
                        __LINE__);
    }
    template <class B, class Native>
    static void before(const char*, Native) {}

private:
    static bool& left() {
        thread_local bool value = false;
        return value;
    }
};

template <Backend B>
using Refusing = Hooked<B, Launches>;

static_assert(Backend<Refusing<Host>>);

} // namespace sluice::test

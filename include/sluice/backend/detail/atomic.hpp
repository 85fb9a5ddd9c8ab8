// A number that threads share: what std::atomic would be, whose header takes a compiler a tenth of what including sluice does.
#pragma once

#include <sluice/backend/config.hpp>

namespace sluice::detail {

/// Any thread may use it at any time. It orders nothing else, unless an order is named.
template <class T>
class Atomic {
public:
    SLUICE_ALWAYS_INLINE Atomic(T value = 0) noexcept : value_(value) {}
    Atomic& operator=(Atomic&&) = delete;

    SLUICE_ALWAYS_INLINE T load(int order = __ATOMIC_RELAXED) const noexcept {
        return __atomic_load_n(&value_, order);
    }
    SLUICE_ALWAYS_INLINE operator T() const noexcept { return load(); }
    SLUICE_ALWAYS_INLINE void store(T value, int order = __ATOMIC_RELAXED) noexcept {
        __atomic_store_n(&value_, value, order);
    }
    /// Gives what it was.
    SLUICE_ALWAYS_INLINE T exchange(T value, int order) noexcept {
        return __atomic_exchange_n(&value_, value, order);
    }
    /// Adds `value`, and gives the sum.
    SLUICE_ALWAYS_INLINE T add(T value) noexcept {
        return __atomic_add_fetch(&value_, value, __ATOMIC_RELAXED);
    }
    /// Takes `value` off, and gives the rest; in this order.
    SLUICE_ALWAYS_INLINE T subtract(T value, int order = __ATOMIC_RELAXED) noexcept {
        return __atomic_sub_fetch(&value_, value, order);
    }
    /// Makes it `to` and gives true, if it is `from`; otherwise, or at times, makes `from` what it is and gives false.
    SLUICE_ALWAYS_INLINE bool replace(T& from, T to) noexcept {
        return __atomic_compare_exchange_n(&value_, &from, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }

private:
    T value_;
};

} // namespace sluice::detail

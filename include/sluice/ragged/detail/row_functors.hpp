// What the row operations do with the values of a row, on every backend.
//
// A reduction has `Accumulator init()`, `take(accumulator, value, position)`, `merge(earlier, later)` and
// `finish(accumulator, length)`. `take` adds a value, and `merge` the accumulator of later values.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <sluice/backend/config.hpp>

namespace sluice::ragged::detail {

// Constants, since a kernel may read those but not call `std::numeric_limits`.
template <class T>
inline constexpr T greatest_of = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                                      : (std::numeric_limits<T>::max)();
template <class T>
inline constexpr T least_of = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                                   : std::numeric_limits<T>::lowest();
template <class T>
inline constexpr T not_a_number = std::numeric_limits<T>::quiet_NaN();
template <class T>
SLUICE_HOST_DEVICE constexpr T greatest() {
    constexpr T value = greatest_of<T>;
    return value;
}
template <class T>
SLUICE_HOST_DEVICE constexpr T least() {
    constexpr T value = least_of<T>;
    return value;
}

/// Written without `x != x`, of which compilers warn for integers.
template <class T>
SLUICE_HOST_DEVICE constexpr bool is_nan(T value) {
    if constexpr (std::is_floating_point_v<T>) {
        return !(value <= greatest<T>());
    } else {
        return false;
    }
}

// The C functions, since they exist for kernels by these names.
SLUICE_HOST_DEVICE inline float exp_of(float x) { return ::expf(x); }
SLUICE_HOST_DEVICE inline double exp_of(double x) { return ::exp(x); }
SLUICE_HOST_DEVICE inline float log_of(float x) { return ::logf(x); }
SLUICE_HOST_DEVICE inline double log_of(double x) { return ::log(x); }

/// Whether `a` is to be chosen rather than `b`: NaN comes first, so that one in a row is never hidden.
template <bool Greatest, class T>
SLUICE_HOST_DEVICE constexpr bool beats(T a, T b) {
    if (is_nan(b))
        return false;
    if constexpr (Greatest) {
        return a > b || is_nan(a);
    } else {
        return a < b || is_nan(a);
    }
}

/// Integers wrap around, as devices' do, and narrow ones are summed without the warnings of their promotion.
template <class U>
SLUICE_HOST_DEVICE constexpr U plus(U a, U b) {
    if constexpr (std::is_integral_v<U> && sizeof(U) >= sizeof(int)) {
        using Unsigned = std::make_unsigned_t<U>;
        return static_cast<U>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
        return static_cast<U>(a + b);
    }
}

/// Whether values can be added up in a `U`.
template <class T, class U>
inline constexpr bool adds_up = !std::is_const_v<U> && requires(T value, U sum) {
    U(0);
    static_cast<U>(value);
    static_cast<U>(sum + sum);
};

template <class T, class U>
struct SumOf {
    static_assert(adds_up<T, U>,
                  "sluice::ragged: sums need results that are numbers and not const, and values that "
                  "convert to them");
    using Accumulator = U;
    using Result = U;
    SLUICE_HOST_DEVICE U init() const { return U(0); }
    SLUICE_HOST_DEVICE U take(U sum, T value, std::int64_t) const { return plus(sum, static_cast<U>(value)); }
    SLUICE_HOST_DEVICE U merge(U a, U b) const { return plus(a, b); }
    SLUICE_HOST_DEVICE U finish(U sum, std::int64_t) const { return sum; }
};

template <class T, class U>
struct MeanOf : SumOf<T, U> {
    static_assert(std::is_floating_point_v<U>, "sluice::ragged::mean: the means must be float or double");
    SLUICE_HOST_DEVICE U finish(U sum, std::int64_t length) const {
        constexpr U none = not_a_number<U>;
        return length > 0 ? sum / static_cast<U>(length) : none;
    }
};

template <class T, bool Greatest>
struct ExtremeOf {
    // Of a type that it does not know, it says that the greatest value is T().
    static_assert(std::numeric_limits<T>::is_specialized,
                  "sluice::ragged: max and min need values that std::numeric_limits knows, such as integers, "
                  "float and double");
    using Accumulator = T;
    using Result = T;
    SLUICE_HOST_DEVICE T init() const { return Greatest ? least<T>() : greatest<T>(); }
    SLUICE_HOST_DEVICE T take(T best, T value, std::int64_t) const {
        return beats<Greatest>(value, best) ? value : best;
    }
    SLUICE_HOST_DEVICE T merge(T a, T b) const { return beats<Greatest>(b, a) ? b : a; }
    SLUICE_HOST_DEVICE T finish(T best, std::int64_t) const { return best; }
};

template <class T>
struct IndexedValue {
    T value;
    std::int64_t position; ///< below 0: none yet
};

template <class T>
struct ArgmaxOf {
    static_assert(
        requires(T a, T b) { static_cast<bool>(a > b); },
        "sluice::ragged: argmax needs values that can be compared by operator>");
    using Accumulator = IndexedValue<T>;
    using Result = std::int64_t;
    SLUICE_HOST_DEVICE IndexedValue<T> init() const { return {T{}, -1}; }
    // Values come in order, so that of equal ones the first stays.
    SLUICE_HOST_DEVICE IndexedValue<T> take(IndexedValue<T> best, T value, std::int64_t position) const {
        return best.position < 0 || beats<true>(value, best.value) ? IndexedValue<T>{value, position} : best;
    }
    // Of equal values the first, whichever comes in first.
    SLUICE_HOST_DEVICE IndexedValue<T> merge(IndexedValue<T> a, IndexedValue<T> b) const {
        if (a.position < 0)
            return b;
        if (b.position < 0)
            return a;
        if (beats<true>(b.value, a.value))
            return b;
        const bool equal = !beats<true>(a.value, b.value);
        return equal && b.position < a.position ? b : a;
    }
    SLUICE_HOST_DEVICE std::int64_t finish(IndexedValue<T> best, std::int64_t) const { return best.position; }
};

/// The greatest value so far, and the sum of the exponentials of what values are above it.
template <class T>
struct ExponentialSum {
    T greatest;
    T sum;
};

template <class T>
struct ExponentialSumOf {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                  "sluice::ragged: logsumexp and softmax need values that are float or double");
    using Accumulator = ExponentialSum<T>;
    using Result = ExponentialSum<T>;
    SLUICE_HOST_DEVICE Accumulator init() const { return {least<T>(), T(0)}; }
    // Equal values are a case of their own, so that infinities are not subtracted from each other.
    SLUICE_HOST_DEVICE Accumulator take(Accumulator a, T value, std::int64_t) const {
        if (value > a.greatest)
            return {value, a.sum * exp_of(a.greatest - value) + T(1)};
        if (value == a.greatest)
            return {a.greatest, a.sum + T(1)};
        return {a.greatest, a.sum + exp_of(value - a.greatest)};
    }
    SLUICE_HOST_DEVICE Accumulator merge(Accumulator a, Accumulator b) const {
        if (b.greatest > a.greatest)
            return {b.greatest, b.sum + a.sum * exp_of(a.greatest - b.greatest)};
        if (b.greatest == a.greatest)
            return {a.greatest, a.sum + b.sum};
        return {a.greatest, a.sum + b.sum * exp_of(b.greatest - a.greatest)};
    }
    SLUICE_HOST_DEVICE Accumulator finish(Accumulator a, std::int64_t) const { return a; }
};

template <class T>
struct LogSumExpOf : ExponentialSumOf<T> {
    using Result = T;
    SLUICE_HOST_DEVICE T finish(ExponentialSum<T> a, std::int64_t) const {
        return a.greatest + log_of(a.sum);
    }
};

/// A reduction of a whole row, one value after the other.
template <class Op, class T>
SLUICE_HOST_DEVICE typename Op::Accumulator reduce_all(const Op& op, const T* values, std::int64_t count) {
    typename Op::Accumulator accumulator = op.init();
    for (std::int64_t i = 0; i < count; ++i)
        accumulator = op.take(accumulator, values[i], i);
    return accumulator;
}

} // namespace sluice::ragged::detail

// The 16-bit types, against their definitions.
#include <limits>

#include <nn/core/float16.hpp>

#include "nn/support.hpp"

namespace nn_float16 {

namespace {

/// The value of `bits`, with so many bits of exponent and of fraction.
double value_of(unsigned bits, unsigned exponent_bits, unsigned fraction_bits) {
    const unsigned fraction = bits & ((1u << fraction_bits) - 1);
    const unsigned most = (1u << exponent_bits) - 1;
    const unsigned exponent = (bits >> fraction_bits) & most;
    const int bias = static_cast<int>(most / 2);
    const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
    if (exponent == most)
        return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                             : sign * std::numeric_limits<double>::infinity();
    const double whole = exponent == 0 ? 0.0 : 1.0;
    const int power = exponent == 0 ? 1 - bias : static_cast<int>(exponent) - bias;
    return sign *
           std::ldexp(whole + std::ldexp(static_cast<double>(fraction), -static_cast<int>(fraction_bits)),
                      power);
}

template <class T>
void check_type(unsigned exponent_bits) {
    const unsigned fraction_bits = 15 - exponent_bits;
    for (unsigned bits = 0; bits < 0x10000u; ++bits) {
        CAPTURE(bits);
        const float value = static_cast<float>(T::from_bits(static_cast<std::uint16_t>(bits)));
        const double expected = value_of(bits, exponent_bits, fraction_bits);
        if (std::isnan(expected)) {
            REQUIRE(std::isnan(value));
            REQUIRE(std::isnan(static_cast<float>(T(value))));
            continue;
        }
        REQUIRE(static_cast<double>(value) == expected);
        REQUIRE(T(value).bits() == bits);
        // Half of the way to the next, and a little to either side of that.
        const double next = value_of(bits + 1, exponent_bits, fraction_bits);
        if ((bits & 0x7FFFu) == 0x7FFFu || !std::isfinite(expected) || !std::isfinite(next))
            continue;
        const auto middle = static_cast<float>((expected + next) / 2);
        const float away = std::copysign(std::numeric_limits<float>::infinity(), middle);
        REQUIRE(T(middle).bits() == bits + (bits & 1u));
        REQUIRE(T(std::nextafter(middle, 0.0f)).bits() == bits);
        REQUIRE(T(std::nextafter(middle, away)).bits() == bits + 1);
    }
}

} // namespace

TEST_CASE("16-bit types: every value there and back, and rounding to nearest, ties to even") {
    check_type<nn::Half>(5);
    check_type<nn::Bfloat16>(8);
}

TEST_CASE("16-bit types: what is too large becomes an infinity") {
    CHECK(nn::Half(65519.0f).bits() == 0x7BFF);
    CHECK(nn::Half(65520.0f).bits() == 0x7C00);
    CHECK(nn::Half(-1e30f).bits() == 0xFC00);
    CHECK(nn::Bfloat16(std::numeric_limits<float>::max()).bits() == 0x7F80);
}

} // namespace nn_float16

// Weights of an axis as integers, and the pairs of 15 bits that stand for them.
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

#include <images/axis_weights.hpp>
#include <images/detail/blend.hpp>

#include "images/support.hpp"
#include "support/doctest.hpp"

namespace images_axis_weights_test {

using images::AxisWeights;
using images::bilinear_weights;

namespace {

/// Output `i` for two inputs, by the definition.
int by_definition(const AxisWeights& axis, std::size_t i, int a, int b) {
    const std::int32_t* weight = axis.weight.data() + i * static_cast<std::size_t>(axis.taps);
    const int second = axis.count[i] == 2 ? weight[1] * b : 0;
    return (weight[0] * a + second + (1 << 21)) >> 22;
}

struct Sizes {
    int in;
    int out;
};

constexpr float raised = 8388608.0f;

/// The first input, and the weight of the second, as a device reads them.
struct TablePair {
    std::int32_t first;
    float weight;
};

TablePair table_pair(const std::vector<std::int32_t>& table, std::size_t i) {
    return {table[2 * i], std::bit_cast<float>(table[2 * i + 1])};
}

} // namespace

TEST_CASE("weights: of an axis that grows sevenfold, fourteenths") {
    const AxisWeights axis = bilinear_weights(32, 224);
    REQUIRE(axis.taps == 2);
    // Output 3 has its centre in the middle of input 0, output 4 a seventh further.
    CHECK(axis.first[3] == 0);
    CHECK(axis.weight[6] == 1 << 22);
    CHECK(axis.first[4] == 0);
    CHECK(axis.weight[8] == 3595118); // 6/7 of 2^22
    CHECK(axis.weight[9] == 599186);
    CHECK(axis.count[0] == 1);
    CHECK(axis.first[223] == 31);
    CHECK(axis.count[223] == 1);
    CHECK(axis.has_pairs());
}

TEST_CASE("weights: cover the input, and add up but for rounding") {
    for (const Sizes& sizes : {Sizes{32, 224}, {224, 32}, {7, 7}, {1, 9}, {9, 1}, {50, 49}, {3, 1000}}) {
        const int in = sizes.in;
        const int out = sizes.out;
        CAPTURE(in);
        CAPTURE(out);
        const AxisWeights axis = bilinear_weights(in, out);
        std::vector<int> used(static_cast<std::size_t>(in));
        for (std::size_t i = 0; i < static_cast<std::size_t>(out); ++i) {
            const auto begin = axis.weight.begin() + static_cast<std::ptrdiff_t>(i) * axis.taps;
            CHECK(std::abs(std::accumulate(begin, begin + axis.taps, 0) - (1 << 22)) <= axis.taps);
            for (int j = 0; j < axis.count[i]; ++j)
                used.at(static_cast<std::size_t>(axis.first[i] + j)) += begin[j] > 0;
        }
        for (const int outputs : used)
            CHECK(outputs > 0);
    }
}

TEST_CASE("weights: pairs and what a device computes with them give the definition's bytes") {
    for (const Sizes& sizes :
         {Sizes{32, 224}, {28, 224}, {32, 64}, {32, 48}, {8, 32}, {2, 7}, {16, 16}, {256, 384}, {2, 1}}) {
        const int in = sizes.in;
        const int out = sizes.out;
        CAPTURE(in);
        CAPTURE(out);
        const AxisWeights axis = bilinear_weights(in, out);
        REQUIRE(axis.has_pairs());
        std::vector<std::int32_t> table;
        images::detail::append_table(axis, table);
        REQUIRE(table.size() == images::detail::AxisTable(axis).words);
        int wrong = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(out); ++i) {
            const TablePair pair = table_pair(table, i);
            // The last input alone is the second one of a device's pair.
            const bool alone = axis.first[i] == in - 1;
            REQUIRE(pair.first == (alone ? in - 2 : axis.first[i]));
            for (int a = 0; a < 256; ++a) {
                for (int b = 0; b < 256; ++b) {
                    const int expected = by_definition(axis, i, alone ? b : a, b);
                    const int found = a + (((b - a) * axis.pair_weight[i] + (1 << 14)) >> 15);
                    wrong += !alone && found != expected;
                    const float low = raised + static_cast<float>(a);
                    const float step = images::detail::step_between(low, raised + static_cast<float>(b));
                    const float blended = images::detail::blend(low, step, pair.weight);
                    wrong += blended != raised + static_cast<float>(expected);
                }
            }
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("weights: no pairs where an output has three inputs, or 15 bits are too few") {
    CHECK(!bilinear_weights(224, 32).has_pairs());
    CHECK(!bilinear_weights(333, 1000).has_pairs());
}

TEST_CASE("weights: of sides that cannot be are refused") {
    using images_test::error_of;
    CHECK(error_of([] { bilinear_weights(0, 5); }) ==
          "an axis is to be resized from 0 to 5 pixels; both must be 1 to 1048576");
    CHECK(error_of([] { bilinear_weights(5, (1 << 20) + 1); }) ==
          "an axis is to be resized from 5 to 1048577 pixels; both must be 1 to 1048576");
}

} // namespace images_axis_weights_test

// Parameters: drawn from counters alone, in their ranges, alike everywhere.
#include <set>

#include "augment/support.hpp"

namespace augment_parameters {

using namespace augment;
using namespace augment_test;

namespace {

ParameterRanges ranges() {
    ParameterRanges result;
    result.last_top = 4;
    result.last_left = 2;
    result.angle_degrees = {-45.0f, 45.0f};
    result.sigma = {0.1f, 2.0f};
    result.flip_probability = 0.25f;
    result.brightness = {0.5f, 1.5f};
    result.contrast = {0.9f, 1.1f};
    return result;
}

SampleParameters drawn(std::uint64_t sample, std::uint32_t epoch = 0, std::uint64_t seed = 0) {
    return draw(ranges(), seed, {sample, epoch, 0});
}

/// What `source` gives for a batch of `count` on the backend under test.
std::vector<SampleParameters> written(const ParameterSource<B>& source, std::size_t count) {
    const Stream stream;
    Buffer<SampleParameters> table(count);
    sluice::fill_bytes(stream, table, 0xee);
    write_parameters<B>(stream, source, table);
    return nn_test::host(stream, table);
}

} // namespace

TEST_CASE("parameters: each from the counter of its sample and operation") {
    const SampleId id{123456789012345, 7, 0};
    const SampleParameters own = draw(ranges(), 99, id);
    const auto numbers = [&](DrawnOperation operation) {
        return sluice::CountedRandom({.seed = 99,
                                      .epoch = 7,
                                      .sample = 123456789012345,
                                      .operation = static_cast<std::uint16_t>(operation)});
    };
    auto crop = numbers(DrawnOperation::crop);
    CHECK(own.top == static_cast<int>(crop.below(5)));
    CHECK(own.left == static_cast<int>(crop.below(3)));
    CHECK(own.angle_degrees == -45.0f + 90.0f * numbers(DrawnOperation::angle).uniform());
    CHECK(own.sigma == 0.1f + (2.0f - 0.1f) * numbers(DrawnOperation::sigma).uniform());
    CHECK(own.flip == (numbers(DrawnOperation::flip).uniform() < 0.25f ? 1 : 0));
    CHECK(own.brightness == 0.5f + 1.0f * numbers(DrawnOperation::brightness).uniform());
    CHECK(own.contrast == 0.9f + (1.1f - 0.9f) * numbers(DrawnOperation::contrast).uniform());
}

TEST_CASE("parameters: other samples, epochs and seeds have others") {
    CHECK(drawn(1) == drawn(1));
    CHECK_FALSE(drawn(1) == drawn(2));
    CHECK_FALSE(drawn(1) == drawn(1, 1));
    CHECK_FALSE(drawn(1) == drawn(1, 0, 1));
    CHECK_FALSE(drawn(1) == drawn(1 + (std::uint64_t{1} << 32)));
}

TEST_CASE("parameters: all of their ranges, and nothing else") {
    std::set<int> tops, lefts;
    int flips = 0;
    float least_angle = 90.0f, most_angle = -90.0f, least_sigma = 9.0f, most_sigma = 0.0f;
    constexpr int samples = 4000;
    for (int i = 0; i < samples; ++i) {
        const SampleParameters own = drawn(static_cast<std::uint64_t>(i));
        tops.insert(own.top);
        lefts.insert(own.left);
        flips += own.flip;
        least_angle = std::min(least_angle, own.angle_degrees);
        most_angle = std::max(most_angle, own.angle_degrees);
        least_sigma = std::min(least_sigma, own.sigma);
        most_sigma = std::max(most_sigma, own.sigma);
    }
    CHECK(tops == std::set<int>{0, 1, 2, 3, 4}); // the last place too
    CHECK(lefts == std::set<int>{0, 1, 2});
    CHECK(std::abs(flips - samples / 4) < 150);
    CHECK(least_angle >= -45.0f);
    CHECK(least_angle < -44.5f);
    CHECK(most_angle <= 45.0f);
    CHECK(most_angle > 44.5f);
    CHECK(least_sigma >= 0.1f);
    CHECK(least_sigma < 0.11f);
    CHECK(most_sigma <= 2.0f);
    CHECK(most_sigma > 1.99f);
}

TEST_CASE("parameters: the defaults change nothing") { CHECK(draw({}, 3, {17, 2, 0}) == SampleParameters{}); }

TEST_CASE("parameters: on this backend as drawn one by one") {
    constexpr std::size_t count = 300;
    std::vector<SampleId> ids;
    std::vector<SampleParameters> expected;
    for (std::size_t i = 0; i < count; ++i) {
        ids.push_back({i * i * 1000003, static_cast<std::uint32_t>(i % 5), 0});
        expected.push_back(draw(ranges(), 11, ids.back()));
    }
    const auto all = nn_test::device(ids);
    CHECK(written({ranges(), 11, all.span()}, count) == expected);

    std::vector<SampleParameters> consecutive;
    for (std::size_t i = 0; i < count; ++i)
        consecutive.push_back(draw(ranges(), 11, {(std::uint64_t{1} << 32) - 10 + i, 3, 0}));
    const auto first = nn_test::device(std::vector<SampleId>{{(std::uint64_t{1} << 32) - 10, 3, 0}});
    CHECK(written({ranges(), 11, first.span()}, count) == consecutive);

    const auto table = nn_test::device(expected);
    CHECK(written(table.span(), count) == expected);
}

} // namespace augment_parameters

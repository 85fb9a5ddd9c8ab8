#include <stdexcept>
#include <vector>

#include <common/segmentation_metrics.hpp>

#include "support/doctest.hpp"

namespace examples_metrics {

using namespace examples;

namespace {
using Classes = std::vector<std::uint8_t>;
}

TEST_CASE("metrics of a hand-computed case") {
    // Classes 0 and 1 are ink, 3 is background, 2 does not occur as a label.
    ConfusionMatrix matrix{4};
    matrix.add(Classes{0, 0, 0, 1, 1, 3, 3, 3}, Classes{0, 0, 1, 1, 2, 3, 3, 0});
    CHECK(matrix.count(0, 1) == 1);
    CHECK(matrix.count(1, 2) == 1);
    CHECK(matrix.count(3, 3) == 2);
    // Five ink pixels, three of them right.
    CHECK(ink_pixel_accuracy(matrix, 3) == doctest::Approx(3.0 / 5.0));
    // Class 0: 2 of 4; class 1: 1 of 3; background: 2 of 3; class 2 is not present.
    CHECK(mean_iou(matrix) == doctest::Approx((2.0 / 4.0 + 1.0 / 3.0 + 2.0 / 3.0) / 3.0));
}

TEST_CASE("pixels add up over calls") {
    ConfusionMatrix once{3};
    once.add(Classes{0, 1, 2, 2}, Classes{0, 2, 2, 1});
    ConfusionMatrix twice{3};
    twice.add(Classes{0, 1}, Classes{0, 2});
    twice.add(Classes{2, 2}, Classes{2, 1});
    CHECK(mean_iou(once) == mean_iou(twice));
    CHECK(ink_pixel_accuracy(once, 2) == ink_pixel_accuracy(twice, 2));
}

TEST_CASE("the extremes") {
    ConfusionMatrix right{3};
    right.add(Classes{0, 1, 2}, Classes{0, 1, 2});
    CHECK(ink_pixel_accuracy(right, 2) == 1.0);
    CHECK(mean_iou(right) == 1.0);

    // Calling everything background is right for most pixels, and worth nothing here.
    ConfusionMatrix lazy{3};
    lazy.add(Classes{0, 2, 2, 2}, Classes{2, 2, 2, 2});
    CHECK(ink_pixel_accuracy(lazy, 2) == 0.0);
    CHECK(mean_iou(lazy) == doctest::Approx((0.0 + 3.0 / 4.0) / 2.0));

    const ConfusionMatrix empty{3};
    CHECK(ink_pixel_accuracy(empty, 2) == 0.0);
    CHECK(mean_iou(empty) == 0.0);
}

TEST_CASE("metrics refuse what they cannot count") {
    ConfusionMatrix matrix{3};
    CHECK_THROWS_WITH_AS(matrix.add(Classes{0, 1}, Classes{0}),
                         "a confusion matrix was given 2 labels and 1 prediction; expected as many of both",
                         std::invalid_argument);
    CHECK_THROWS_AS(matrix.add(Classes{0, 3}, Classes{0, 0}), std::invalid_argument);
    CHECK_THROWS_AS(matrix.add(Classes{0, 0}, Classes{0, 3}), std::invalid_argument);
    CHECK(matrix.count(0, 0) == 0);
    CHECK_THROWS_AS(ConfusionMatrix{0}, std::invalid_argument);
    CHECK_THROWS_AS(ConfusionMatrix{257}, std::invalid_argument);
}

} // namespace examples_metrics

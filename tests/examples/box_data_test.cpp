/// \file
/// The random boxes of the masked GIoU experiment.
#include <algorithm>
#include <cmath>
#include <vector>

#include <masked_giou/box_data.hpp>
#include <nn/losses/boxes/giou.hpp>

#include "support/doctest.hpp"

namespace examples_box_data {

using namespace masked_giou;

namespace {

bool same(const TargetBox& a, const TargetBox& b) {
    return a.x1 == b.x1 && a.y1 == b.y1 && a.x2 == b.x2 && a.y2 == b.y2;
}

} // namespace

TEST_CASE("rows are as long as the published experiment draws them") {
    constexpr std::size_t rows = 20000;
    const BoxRows boxes = published_boxes(rows, 256, 3);
    REQUIRE(boxes.rows.size() == rows);
    // P(length >= k) = P(|N(0, 3)| >= k) = erfc(k / (3 √2)).
    for (const int k : {1, 2, 3, 5, 8}) {
        const auto longer = std::count_if(boxes.rows.begin(), boxes.rows.end(), [&](const auto& row) {
            return row.size() >= static_cast<std::size_t>(k);
        });
        const double expected = std::erfc(k / (3.0 * std::sqrt(2.0)));
        const double spread = std::sqrt(expected * (1 - expected) / rows);
        INFO(k);
        CHECK(std::abs(static_cast<double>(longer) / rows - expected) < 5 * spread);
    }
    CHECK(boxes.longest() < 20);

    // A row does not depend on the others, and a width that is too small cuts it.
    const BoxRows fewer = published_boxes(10, 2, 3);
    CHECK(fewer.longest() == 2);
    for (std::size_t row = 0; row < fewer.rows.size(); ++row) {
        REQUIRE(fewer.rows[row].size() == std::min<std::size_t>(boxes.rows[row].size(), 2));
        CHECK(std::equal(fewer.rows[row].begin(), fewer.rows[row].end(), boxes.rows[row].begin(), same));
    }
}

TEST_CASE("boxes are upright, and reach the image's edge") {
    const BoxRows boxes = boxes_by_fill(50, 100, 1.0, 8);
    int at_edge = 0;
    for (const auto& row : boxes.rows) {
        for (const TargetBox& box : row) {
            CHECK(box.x1 <= box.x2);
            CHECK(box.y1 <= box.y2);
            // Of no width only where there is no pixel left.
            CHECK((box.x1 < box.x2 || box.x1 == 255));
            CHECK((box.y1 < box.y2 || box.y1 == 255));
            at_edge += box.x2 == 255 ? 1 : 0;
        }
    }
    // Corner and side are uniform: their sum is clipped about as often as not.
    CHECK(at_edge > 2200);
    CHECK(at_edge < 2800);
}

TEST_CASE("rows are filled to the degree asked for") {
    for (const double fill : {0.0, 0.05, 0.25, 0.5, 1.0}) {
        const BoxRows boxes = boxes_by_fill(64, 30, fill, 1);
        REQUIRE(boxes.rows.size() == 64);
        CHECK(boxes.boxes() == static_cast<std::size_t>(std::llround(fill * 64 * 30)));
        for (const auto& row : boxes.rows)
            CHECK(std::abs(static_cast<double>(row.size()) - fill * 30) < 1);
    }
}

TEST_CASE("predictions lie near the true boxes, one for each place") {
    constexpr std::size_t width = 12;
    const BoxRows boxes = published_boxes(200, width, 5);
    const std::vector<nn::Box<float>> predictions = predictions_for(boxes, width, 5);
    REQUIRE(predictions.size() == 200 * width);
    bool moved = false;
    for (std::size_t row = 0; row < boxes.rows.size(); ++row) {
        for (std::size_t i = 0; i < boxes.rows[row].size(); ++i) {
            const nn::Box<float> truth = nn::box_as<float>(boxes.rows[row][i]);
            const nn::Box<float>& found = predictions[row * width + i];
            const float by = 0.2501f * (truth.x2 - truth.x1);
            CHECK(std::abs(found.x1 - truth.x1) <= by);
            CHECK(std::abs(found.x2 - truth.x2) <= by);
            moved = moved || found.x1 != truth.x1;
            if (truth.x1 < truth.x2 && truth.y1 < truth.y2) {
                const float giou = nn::ArticleGiou{}(found, truth);
                CHECK(giou > 0.0f);
                CHECK(giou <= 1.0f);
            }
        }
    }
    CHECK(moved);
}

} // namespace examples_box_data

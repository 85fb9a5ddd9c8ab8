#include <algorithm>
#include <set>

#include <nn/layers/morton_order.hpp>

#include "nn/support.hpp"

namespace nn_morton_order {

TEST_CASE("morton order: every pixel has one row") {
    NN_TEST_RANDOM(random);
    const std::size_t levels = random.between(0, 4);
    const std::size_t side = std::size_t{1} << levels;
    const nn::MortonOrder order(side * random.between(1, 5), side * random.between(1, 5), levels);
    CAPTURE(order.height());
    CAPTURE(order.width());
    REQUIRE(order.raster_of_row().size() == order.pixels());
    std::vector<bool> seen(order.pixels());
    for (const std::int32_t pixel : order.raster_of_row()) {
        const auto raster = static_cast<std::size_t>(pixel);
        REQUIRE(raster < order.pixels());
        REQUIRE_FALSE(seen[raster]);
        seen[raster] = true;
    }
}

TEST_CASE("morton order: the four rows of a block are its pixels, at every level") {
    NN_TEST_RANDOM(random);
    const std::size_t levels = random.between(1, 4);
    const std::size_t side = std::size_t{1} << levels;
    const std::size_t height = side * random.between(1, 4);
    const std::size_t width = side * random.between(1, 4);
    for (std::size_t level = 0; level < levels; ++level) {
        // The order of the level's map, and that of the next, half as large.
        const nn::MortonOrder fine(height >> level, width >> level, levels - level);
        const nn::MortonOrder coarse(fine.height() / 2, fine.width() / 2, levels - level - 1);
        for (std::size_t row = 0; row < fine.pixels(); ++row) {
            const auto raster = static_cast<std::size_t>(fine.raster_of_row()[row]);
            const auto parent = static_cast<std::size_t>(coarse.raster_of_row()[row / 4]);
            const std::size_t y = raster / fine.width();
            const std::size_t x = raster % fine.width();
            REQUIRE(parent == y / 2 * coarse.width() + x / 2);
            REQUIRE(row % 4 == 2 * (y % 2) + x % 2);
        }
    }
}

TEST_CASE("morton order: without levels it is the raster") {
    const nn::MortonOrder order(3, 7, 0);
    for (std::size_t row = 0; row < order.pixels(); ++row) {
        CHECK(order.raster_of_row()[row] == static_cast<int>(row));
    }
}

TEST_CASE("morton order: neighbours are those of the image") {
    NN_TEST_RANDOM(random);
    const nn::MortonOrder order(4 * random.between(1, 4), 4 * random.between(1, 4), 2);
    const auto neighbours = order.neighbours();
    REQUIRE(neighbours.size() == 9 * order.pixels());
    const int width = static_cast<int>(order.width());
    const int height = static_cast<int>(order.height());
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
        const int raster = order.raster_of_row()[i / 9];
        const int y = raster / width + static_cast<int>(i % 9 / 3) - 1;
        const int x = raster % width + static_cast<int>(i % 3) - 1;
        const bool inside = y >= 0 && y < height && x >= 0 && x < width;
        REQUIRE((neighbours[i] >= 0) == inside);
        if (inside)
            REQUIRE(order.raster_of_row()[static_cast<std::size_t>(neighbours[i])] == y * width + x);
    }
}

TEST_CASE("morton order: sizes that cannot be halved are refused in one sentence") {
    CHECK(
        nn_test::error_of([] { nn::MortonOrder(12, 30, 2); }) ==
        "morton order: an image of 12 x 30 pixels cannot be halved 2 times; both sides must be multiples of "
        "2^2");
    CHECK(nn_test::error_of([] { nn::MortonOrder(0, 4, 1); }).find("is empty") != std::string::npos);
}

} // namespace nn_morton_order

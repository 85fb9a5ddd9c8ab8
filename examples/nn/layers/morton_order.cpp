#include <nn/layers/morton_order.hpp>

#include <limits>
#include <string>

#include <sluice/backend/error.hpp>

namespace nn {

MortonOrder::MortonOrder(std::size_t height, std::size_t width, std::size_t levels)
    : height_(height), width_(width), levels_(levels) {
    const std::string image = std::to_string(height) + " x " + std::to_string(width) + " pixels";
    if (height == 0 || width == 0 || height > std::numeric_limits<std::int32_t>::max() / width) {
        throw sluice::Error("morton order: an image of " + image + " is empty or larger than 2^31 pixels");
    }
    if (levels >= 31 || height % (std::size_t{1} << levels) != 0 || width % (std::size_t{1} << levels) != 0) {
        throw sluice::Error("morton order: an image of " + image + " cannot be halved " +
                            std::to_string(levels) + " times; both sides must be multiples of 2^" +
                            std::to_string(levels));
    }
    raster_of_row_.resize(pixels());
    row_of_raster_.resize(pixels());
    const std::size_t tiles_across = width >> levels;
    for (std::size_t row = 0; row < pixels(); ++row) {
        const std::size_t tile = row >> (2 * levels);
        std::size_t y = tile / tiles_across;
        std::size_t x = tile % tiles_across;
        for (std::size_t level = levels; level-- > 0;) {
            const std::size_t child = (row >> (2 * level)) & 3;
            y = 2 * y + (child >> 1);
            x = 2 * x + (child & 1);
        }
        const std::size_t raster = y * width + x;
        raster_of_row_[row] = static_cast<std::int32_t>(raster);
        row_of_raster_[raster] = static_cast<std::int32_t>(row);
    }
}

std::vector<std::int32_t> MortonOrder::neighbours() const {
    std::vector<std::int32_t> result;
    result.reserve(9 * pixels());
    for (const std::int32_t raster : raster_of_row_) {
        const std::size_t y = static_cast<std::size_t>(raster) / width_;
        const std::size_t x = static_cast<std::size_t>(raster) % width_;
        // Coordinates plus one, so that they stay unsigned.
        for (std::size_t ny = y; ny <= y + 2; ++ny) {
            for (std::size_t nx = x; nx <= x + 2; ++nx) {
                const bool inside = ny >= 1 && ny <= height_ && nx >= 1 && nx <= width_;
                result.push_back(inside ? row_of_raster_[(ny - 1) * width_ + nx - 1] : -1);
            }
        }
    }
    return result;
}

} // namespace nn

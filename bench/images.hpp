/// \file
/// images: what the input of a network for images costs. See support/main.cpp for how to run it; times are until the work is
/// done.
///
/// - `host/WORK`: one image on one core, as a worker of a source fills a batch: drawing a random one, enlarging it from 32×32 to
///   224×224 as bytes, and as normalised floats. A step is one image. `pillow_resize.py` runs these beside Pillow.
/// - `cuda/batch:N/WORK/beside_copy`: N images of random bytes, enlarged from 32×32 to 224×224 as bytes, as halves or floats,
///   interleaved or planar; and normalised where they already are 224×224. Beside a copy within device memory that moves as
///   many bytes as the work must, read and written, so that a ratio of 1.25 is 80 % of the bandwidth of a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <images/image_set.hpp>
#include <images/resize.hpp>

#include "ragged.hpp"
#include "support/random_bytes.hpp"

namespace bench {

inline constexpr int enlarged_side = 224;

inline std::size_t numbers_in(images::ImageShape shape) {
    return static_cast<std::size_t>(shape.channels) * static_cast<std::size_t>(shape.height) *
           static_cast<std::size_t>(shape.width);
}

inline constexpr images::ImageShape small_shape{3, images::image_side, images::image_side};
inline constexpr images::ImageShape enlarged_shape{3, enlarged_side, enlarged_side};

} // namespace bench

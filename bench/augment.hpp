/// \file
/// augment: what augmentation costs. See support/main.cpp for how to run it; times are until the work is done.
///
/// - `BACKEND/batch:N/OPERATOR`: one operator on N images of 3 × 256 × 256 random bytes, which become floats, with
///   parameters drawn for each sample. On CUDA beside a copy within device memory that moves as many bytes as the operator
///   must, read and written, so that a ratio of 2 is half of the bandwidth of a copy. An output that fits in the device's
///   cache is not in memory at the end of a step, neither the operator's nor the copy's.
/// - `BACKEND/batch:N/published`, `…/published_half`: the published chain in one go, to float and to 16-bit numbers; beside
///   such a copy (`/beside_copy`), and beside the same chain in three plain kernels written by hand (`/beside_by_hand`).
///   What a chain must read is its crop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <augment/apply.hpp>
#include <augment/published.hpp>

#include "ragged.hpp"
#include "support/random_bytes.hpp"

namespace bench {

inline constexpr augment::ImageShape image_shape{3, 256, 256};

inline std::size_t numbers_in(augment::ImageShape shape) {
    return static_cast<std::size_t>(shape.channels) * static_cast<std::size_t>(shape.height) *
           static_cast<std::size_t>(shape.width);
}

/// Random images, and what parameters are drawn for.
template <class B>
struct ImageBatch {
    explicit ImageBatch(int images)
        : count(static_cast<std::size_t>(images)), bytes(count * numbers_in(image_shape)), ids(1) {
        const sluice::BasicStream<B> stream;
        sluice::copy_and_wait(stream.ref(), bytes, random_bytes(bytes.size()));
        sluice::copy_and_wait(stream.ref(), ids, std::vector<augment::SampleId>(1));
    }
    augment::Images<const std::uint8_t, B> images() const { return {bytes.span(), image_shape}; }
    augment::ParameterSource<B> parameters() const {
        augment::ParameterRanges ranges = augment::published_ranges(image_shape);
        ranges.flip_probability = 0.5f;
        ranges.brightness = {0.8f, 1.2f};
        ranges.contrast = {0.8f, 1.2f};
        return {ranges, 11, ids.span()};
    }

    std::size_t count;
    sluice::DeviceBuffer<std::uint8_t, B> bytes;
    sluice::DeviceBuffer<augment::SampleId, B> ids;
};

/// Bytes that a chain must move for an image: those of its crop, or all, and what it writes.
template <class Out, class Chain>
std::size_t bytes_moved(const Chain& chain) {
    augment::ImageShape read = image_shape;
    if constexpr (requires { chain.template op<0>().prepare({}, image_shape).top; })
        read = chain.template op<0>().shape_after(image_shape);
    return numbers_in(read) + sizeof(Out) * numbers_in(chain.output_shape(image_shape));
}

/// A chain on a batch.
template <class B, class Out, class Chain>
class AugmentSubject {
public:
    AugmentSubject(int images, const Chain& chain)
        : chain_(chain), batch_(images), shape_(chain.output_shape(image_shape)),
          results_(batch_.count * numbers_in(shape_)) {}
    void step() {
        apply(stream_.ref(), chain_, batch_.images(), batch_.parameters(),
              augment::Images<Out, B>(results_.span(), shape_));
    }
    void sync() { stream_.sync(); }
    sluice::BasicStreamRef<B> stream() { return stream_.ref(); }
    const ImageBatch<B>& batch() const { return batch_; }
    const sluice::DeviceBuffer<Out, B>& results() const { return results_; }

private:
    Chain chain_;
    ImageBatch<B> batch_;
    augment::ImageShape shape_;
    sluice::DeviceBuffer<Out, B> results_;
    sluice::BasicStream<B> stream_;
};

/// Calls `add(name, chain)` for each operator by itself.
template <class Add>
void for_each_operator(Add add) {
    using namespace augment;
    add("convert", Chain{Scale{1 / 255.0f}});
    add("normalize", Chain{Normalize{{120.0f, 110.0f, 100.0f}, {60.0f, 61.0f, 62.0f}}});
    add("brightness", Chain{Brightness{}});
    add("contrast", Chain{Contrast{}});
    add("flip", Chain{Flip{}});
    add("crop", Chain{Crop{128, 128}});
    add("crop_roi_align", Chain{RoiAlignCrop{128, 128}});
    add("enlarge", Chain{Resize{512, 512}});
    add("shrink", Chain{Resize{128, 128}});
    add("shrink_plain", Chain{Resize{128, 128, false}});
    add("rotate", Chain{Rotate<Nearest>{}});
    add("rotate_bilinear", Chain{Rotate<Bilinear>{}});
    add("blur", Chain{Blur<7>{}});
}

} // namespace bench

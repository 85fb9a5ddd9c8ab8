/// \file
/// Photographs before and after augmentation, for a look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <common/picture.hpp>
#include <common/ppm.hpp>
#include <gpu_augment/augmentation.hpp>
#include <gpu_augment/options.hpp>
#include <nn/core/device.hpp>
#include <sluice/sluice.hpp>

namespace gpu_augment {

/// Samples of each photograph.
inline constexpr std::size_t shown_samples = 4;

/// A row for each photograph: as it is, then the samples of it. `augmented` holds, of each photograph, `shown_samples`
/// images of three planes.
examples::Picture compose_contact_sheet(const std::vector<examples::PlanarImage>& photographs,
                                        const std::vector<std::vector<float>>& augmented);

/// `shown_samples` samples of `photograph`, augmented as published, and numbered from `first` on.
template <sluice::Backend B>
std::vector<float> samples_of(const examples::PlanarImage& photograph, std::size_t first,
                              std::uint64_t seed) {
    const BatchAugmentation augmentation(ChainName::published, photograph.height, photograph.width, seed);
    std::vector<std::uint8_t> images;
    std::vector<augment::SampleId> samples;
    for (std::size_t i = 0; i < shown_samples; ++i) {
        images.insert(images.end(), photograph.planes.begin(), photograph.planes.end());
        samples.push_back({.sample = first + i});
    }
    const auto device_images = nn::to_device<B>(images);
    const auto device_samples = nn::to_device<B>(samples);
    const sluice::BasicStream<B> stream;
    sluice::DeviceBuffer<float, B> augmented(images.size());
    augmentation.run(stream.ref(), device_images, device_samples, augmented);
    return nn::to_host<B>(stream.ref(), augmented);
}

/// Throws `examples::BadInput`, which names the folder, for a photograph that is too small for the published chain.
void require_augmentable(const examples::PlanarImage& photograph, const std::string& folder);

/// Reads the photographs that the options name and writes their contact sheet. Throws `examples::BadInput`.
template <sluice::Backend B>
void draw_contact_sheet(const Options& options) {
    const std::vector<examples::PlanarImage> photographs = examples::read_photographs(options.photographs);
    for (const examples::PlanarImage& photograph : photographs)
        require_augmentable(photograph, options.photographs);
    std::vector<std::vector<float>> augmented;
    for (std::size_t i = 0; i < photographs.size(); ++i)
        augmented.push_back(samples_of<B>(photographs[i], i * shown_samples, options.seed));
    examples::write_png(compose_contact_sheet(photographs, augmented), options.contact_sheet);
}

} // namespace gpu_augment

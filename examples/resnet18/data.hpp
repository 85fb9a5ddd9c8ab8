/// \file
/// The images that the rungs are climbed on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <common/bad_input.hpp>
#include <common/fnv1a.hpp>
#include <common/text.hpp>
#include <images/image_set.hpp>
#include <resnet18/options.hpp>
#include <resnet18/subset.hpp>

namespace resnet18::detail {

/// The images to train on, and for digits those that are not.
struct Data {
    std::unique_ptr<const images::ImageSet> set;
    std::unique_ptr<const images::ImageSet> held_out;
};

inline Data open_data(const std::string& name, const Options& options) {
    Data data{images::open_image_set(name, options.seed), nullptr};
    if (dynamic_cast<const images::DigitImages*>(data.set.get()) != nullptr)
        data.held_out = std::make_unique<images::DigitImages>(name, images::Split::held_out, options.seed);
    for (auto* const set : {&data.set, &data.held_out}) {
        if (options.images && *set)
            *set = std::make_unique<FirstImages>(std::move(*set), *options.images);
    }
    return data;
}

/// The hash of up to 64 images from all over a set, by which other data are told apart.
inline std::string hash_of_images(const images::ImageSet& set) {
    std::vector<std::uint8_t> pixels(images::ImageSet::image_bytes);
    examples::Fnv1a hash;
    for (std::size_t index = 0; index < set.size(); index += (set.size() + 63) / 64) {
        hash.add(std::uint64_t{set.load(index, pixels)});
        hash.add(pixels);
    }
    return hash.text();
}

/// \throws BadInput where a rank would have nothing to train on
inline void require_image_for_each_rank(const images::ImageSet& set, const Options& options) {
    if (static_cast<std::size_t>(options.ranks()) <= set.size())
        return;
    throw examples::BadInput(std::string(options.gpus > 1 ? "--gpus" : "mpirun") + ": expected at most " +
                             examples::counted(set.size(), "rank") + ", as many as there are images, not " +
                             std::to_string(options.ranks()));
}

} // namespace resnet18::detail

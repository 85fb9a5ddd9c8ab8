#include <gpu_augment/contact_sheet.hpp>

#include <algorithm>
#include <cmath>
#include <span>

#include <common/bad_input.hpp>

namespace gpu_augment {

examples::Picture compose_contact_sheet(const std::vector<examples::PlanarImage>& photographs,
                                        const std::vector<std::vector<float>>& augmented) {
    constexpr std::size_t gap = 6;
    constexpr examples::Colour white = {255, 255, 255};
    std::size_t width = 0;
    std::size_t height = gap;
    for (const examples::PlanarImage& photograph : photographs) {
        width = std::max(width, photograph.width);
        height += photograph.height + gap;
    }
    examples::Picture picture(gap + (1 + shown_samples) * (width + gap), height, white);

    std::size_t top = gap;
    for (std::size_t row = 0; row < photographs.size(); ++row) {
        const examples::PlanarImage& photograph = photographs[row];
        const auto draw = [&](std::size_t column, std::span<const std::uint8_t> planes) {
            picture.draw_image(gap + column * (width + gap), top, planes, photograph.height,
                               photograph.width);
        };
        draw(0, photograph.planes);
        std::vector<std::uint8_t> bytes(photograph.planes.size());
        for (std::size_t sample = 0; sample < shown_samples; ++sample) {
            const auto first = augmented[row].begin() + static_cast<std::ptrdiff_t>(sample * bytes.size());
            std::transform(first, first + static_cast<std::ptrdiff_t>(bytes.size()), bytes.begin(),
                           [](float value) {
                               return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f)));
                           });
            draw(1 + sample, bytes);
        }
        top += photograph.height + gap;
    }
    return picture;
}

void require_augmentable(const examples::PlanarImage& photograph, const std::string& folder) {
    try {
        (void)choose_chain(ChainName::published, photograph.height, photograph.width);
    } catch (const sluice::Error& error) {
        throw examples::BadInput(folder + ": a photograph in it cannot be augmented: " + error.what());
    }
}

} // namespace gpu_augment

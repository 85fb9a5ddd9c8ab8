// Every operator against PyTorch's and torchvision's results: names, shapes and values come from the reference file.
#include <string>

#include <common/safetensors.hpp>

#include "augment/support.hpp"
#include "support/reference.hpp"

namespace augment_reference {

using namespace augment;
using namespace augment_test;

namespace {

const examples::Tensor& tensor(const std::string& name) {
    static const examples::Safetensors file = examples::read_safetensors(sluice_test::reference_path());
    return file.at("augment/" + name);
}

ImageShape shape_of(const examples::Tensor& t) {
    return {static_cast<int>(t.shape.at(1)), static_cast<int>(t.shape.at(2)),
            static_cast<int>(t.shape.at(3))};
}

std::vector<Image> images_of(const std::string& name) {
    return unpacked(tensor(name).as<float>(), shape_of(tensor(name)), Layout::planar);
}

std::vector<SampleParameters> parameters() {
    const auto top = tensor("top").as<double>();
    const auto left = tensor("left").as<double>();
    const auto angle = tensor("angle_degrees").as<float>();
    const auto sigma = tensor("sigma").as<float>();
    std::vector<SampleParameters> result(top.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
        result[i] = {.top = static_cast<int>(top[i]),
                     .left = static_cast<int>(left[i]),
                     .angle_degrees = angle[i],
                     .sigma = sigma[i]};
    }
    return result;
}

struct Difference {
    double relative; ///< of all pixels that are not left out
    double left_out; ///< the fraction that differs, and may
};

/// No pixel of the image may differ.
constexpr int no_ties = -1;

/// Whether a nearest pixel within `around` rows and columns of (y, x) is in doubt.
bool in_doubt(ImageShape shape, double degrees, int y, int x, int around) {
    for (int v = y - around; v <= y + around; ++v) {
        for (int u = x - around; u <= x + around; ++u) {
            if (near_tie(shape, degrees, v, u))
                return true;
        }
    }
    return false;
}

/// `around`: how far what came of a nearest pixel may have spread since, or `no_ties`.
Difference compare(const std::vector<Image>& actual, const std::string& name, int around) {
    const std::vector<Image> expected = images_of(name);
    const auto own = parameters();
    REQUIRE(actual.size() == expected.size());
    double norm = 0.0;
    std::size_t all = 0;
    for (const Image& image : expected) {
        for (const double value : image.values)
            norm += value * value;
        all += image.values.size();
    }
    const double allowed = 1e-5 * std::sqrt(norm / static_cast<double>(all));
    double error = 0.0;
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
        const ImageShape s = expected[i].shape;
        REQUIRE(actual[i].shape == s);
        for (int c = 0; c < s.channels; ++c) {
            for (int y = 0; y < s.height; ++y) {
                for (int x = 0; x < s.width; ++x) {
                    const double difference = actual[i].at(c, y, x) - expected[i].at(c, y, x);
                    if (std::abs(difference) > allowed &&
                        in_doubt(s, static_cast<double>(own[i].angle_degrees), y, x, around)) {
                        ++left_out;
                        continue;
                    }
                    error += difference * difference;
                }
            }
        }
    }
    return {std::sqrt(error / norm), static_cast<double>(left_out) / static_cast<double>(all)};
}

void check(const std::vector<Image>& actual, const std::string& name, int around = no_ties) {
    CAPTURE(name);
    const Difference found = compare(actual, name, around);
    CHECK(found.relative <= 1e-5);
    // At most 0.1 % of the nearest pixels.
    const double side = 2.0 * around + 1.0;
    CHECK(found.left_out <= (around == no_ties ? 0.0 : 1e-3 * side * side));
}

Normalize normalize() {
    const auto mean = tensor("mean").as<float>();
    const auto deviation = tensor("std").as<float>();
    return {mean, deviation};
}

} // namespace

TEST_CASE("reference: each operator of its own") {
    const auto images = images_of("image");
    const auto own = parameters();
    const ImageShape cropped = shape_of(tensor("crop"));
    const ImageShape up = shape_of(tensor("resize_up"));
    const ImageShape down = shape_of(tensor("resize_down_antialias"));
    check(run<std::uint8_t, float>(Chain{Crop{cropped.height, cropped.width}}, images, own), "crop");
    check(run<std::uint8_t, float>(Chain{RoiAlignCrop{cropped.height, cropped.width}}, images, own),
          "crop_roi_align");
    check(run<float, float>(Chain{Resize{up.height, up.width}}, images_of("crop"), own), "resize_up");
    check(run<std::uint8_t, float>(Chain{Resize{down.height, down.width}}, images, own),
          "resize_down_antialias");
    check(run<std::uint8_t, float>(Chain{Resize{down.height, down.width, false}}, images, own),
          "resize_down_plain");
    check(run<float, float>(Chain{Rotate<Nearest>{}}, images_of("resize_up"), own), "rotate", 0);
    check(run<float, float>(Chain{Rotate<Bilinear>{7.0f}}, images_of("resize_up"), own),
          "rotate_bilinear_fill7");
    check(run<float, float>(Chain{Blur<7>{}}, images_of("rotate"), own), "blur");
    check(run<float, float>(Chain{normalize()}, images_of("blur"), own), "normalize");
}

TEST_CASE("reference: the published chain, fused") {
    const ImageShape cropped = shape_of(tensor("crop"));
    const ImageShape up = shape_of(tensor("resize_up"));
    const PublishedChain chain{Crop{cropped.height, cropped.width}, Resize{up.height, up.width},
                               Rotate<Nearest>{}, Blur<7>{}, normalize()};
    check(run<std::uint8_t, float>(chain, images_of("image"), parameters()), "normalize", Blur<7>::half);
    check(run<float, float>(chain, images_of("image"), parameters()), "normalize", Blur<7>::half);
}

} // namespace augment_reference

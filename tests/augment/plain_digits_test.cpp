// What gpu_augment does to digits that it does not augment, against plain loops in float64.
#include "augment/support.hpp"

namespace augment_plain_digits {

using namespace augment;
using namespace augment_test;

TEST_CASE("plain digits: the middle, enlarged and normalised, whatever was drawn") {
    NN_TEST_RANDOM(random);
    struct Sizes {
        ImageShape image;
        int height; ///< of the crop
        int width;
    };
    // A canvas as the experiment has it, then middles that are half a pixel off, a crop that is all of the image or a line of
    // it, and one channel.
    for (const Sizes& sizes :
         {Sizes{{3, 32, 32}, 28, 28}, Sizes{{3, 33, 41}, 28, 36}, Sizes{{3, 40, 36}, 40, 35},
          Sizes{{3, 17, 25}, 1, 24}, Sizes{{1, 30, 21}, 13, 20}}) {
        CAPTURE(sizes.image.height);
        CAPTURE(sizes.image.width);
        const auto images = random_images(random, 3, sizes.image);
        std::vector<SampleParameters> own(images.size());
        own[1].top = sizes.image.height - sizes.height;
        own[1].left = sizes.image.width - sizes.width;
        own[2].angle_degrees = 30.0f;
        own[2].contrast = 2.0f;
        const gpu_augment::PlainDigitChain chain{gpu_augment::MiddleCrop{{sizes.height, sizes.width}},
                                                 Resize{sizes.image.height, sizes.image.width},
                                                 Normalize{40.0f, 55.0f}};
        for (const Layout layout : {Layout::planar, Layout::interleaved}) {
            const auto actual = run<std::uint8_t, float>(chain, images, own, {Layout::planar, layout});
            for (std::size_t i = 0; i < images.size(); ++i) {
                CAPTURE(i);
                const Image middle =
                    resize(crop(images[i], (sizes.image.height - sizes.height) / 2,
                                (sizes.image.width - sizes.width) / 2, sizes.height, sizes.width),
                           sizes.image.height, sizes.image.width, true);
                const Image expected = Image::make(
                    sizes.image, [&](int c, int y, int x) { return (middle.at(c, y, x) - 40.0) / 55.0; });
                CHECK(difference(actual[i], expected) <= byte_tolerance / 55.0);
            }
        }
    }
}

} // namespace augment_plain_digits

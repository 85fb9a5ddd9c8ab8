/// \file
/// The options of a detector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <nn/gemm/gemm.hpp>

namespace nn {

/// What a detector is made for.
struct DetectorOptions {
    std::size_t height = 0; ///< pixels of an image; a multiple of 2^(convolutions)
    std::size_t width = 0;  ///< likewise
    std::vector<std::size_t> channels = {4, 16, 64, 256}; ///< after each convolution
    std::size_t hidden = 0;                               ///< features between the two linear layers
    std::size_t max_boxes = 0;                            ///< boxes predicted for each image
    std::size_t batch = 0;                                ///< images in one call, at most
    float learning_rate = 0.0f;                           ///< of plain gradient descent, until another is set
    float image_scale = 1.0f / 255.0f;                    ///< what the images' bytes are multiplied with
    float box_scale = 1.0f;     ///< what the last layer's outputs are multiplied with, to be pixels
    bool centred_boxes = false; ///< first boxes near the middle half of the image, instead of anywhere
    Precision precision = Precision::tf32; ///< of products on a device; bfloat16: of weights and maps too
    /// Whether `forward` stores the routes of the pools' gradients, for training. Otherwise `backward_and_update` computes
    /// the convolutions again. The results are the same.
    bool keep_routes = false;
    std::uint64_t seed = 0; ///< of the first weights
};

} // namespace nn

/// \file
/// How the kernels in conv_fprop.cuh want the weights packed.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/core/tensor_cores.cuh>

namespace nn::detail {

/// Fills one word: two neighbouring inputs of one output, where `weights` is [9 C, Co]. A warp reads, for a step of
/// 16 inputs and a tile of 8 outputs, two words a lane.
struct PackWeights {
    const float* weights;
    std::uint32_t* packed;
    int inputs;
    int outputs;

    __device__ float weight(int tap, int input, int output) const {
        return weights[(static_cast<std::size_t>(tap) * inputs + input) * outputs + output];
    }

    /// [group of 16][ky][tile of 8][lane][half]: the inputs of a step are the channels of four taps, of which the last
    /// is none.
    __device__ void pack_four(std::size_t word) const {
        const int half = static_cast<int>(word % 2);
        const int lane = static_cast<int>(word / 2 % 32);
        const int tile = static_cast<int>(word / 64 % 2);
        const int ky = static_cast<int>(word / 128 % 3);
        const int group = static_cast<int>(word / 384);
        const int column = lane / 4;
        const int output = group * 16 + column / 2 * 4 + tile * 2 + column % 2;
        const int depth = 8 * half + lane % 4 * 2;
        const int kx = depth / 4;
        const int input = depth % 4;
        packed[word] = kx == 3 ? 0
                               : two_bfloat16(weight(3 * ky + kx, input, output),
                                              weight(3 * ky + kx, input + 1, output));
    }

    /// [group of 64][kx][step][ky][pair of tiles][lane][tile of the pair][half].
    __device__ void pack_wide(std::size_t word) const {
        const int steps = inputs / 16;
        const int half = static_cast<int>(word % 2);
        const int lane = static_cast<int>(word / 4 % 32);
        const int tile = static_cast<int>(word / 128 % 4 * 2 + word / 2 % 2);
        const std::size_t rest = word / 512;
        const int ky = static_cast<int>(rest % 3);
        const int step = static_cast<int>(rest / 3 % steps);
        const int kx = static_cast<int>(rest / 3 / steps % 3);
        const int group = static_cast<int>(rest / 3 / steps / 3);
        const int column = lane / 4;
        const int output = group * 64 + tile / 4 * 32 + column / 2 * 8 + tile % 4 * 2 + column % 2;
        const int input = 16 * step + 8 * half + lane % 4 * 2;
        packed[word] =
            two_bfloat16(weight(3 * ky + kx, input, output), weight(3 * ky + kx, input + 1, output));
    }

    __device__ void operator()(std::size_t word) const {
        if (inputs == 4)
            pack_four(word);
        else
            pack_wide(word);
    }
};

} // namespace nn::detail

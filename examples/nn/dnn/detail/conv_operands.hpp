/// \file
/// Device memory for all that a graph of a convolution reads and writes, to time plans on and to check them. Includes
/// cudnn-frontend.
#pragma once

#include <cstddef>
#include <vector>

#include <nn/dnn/detail/conv_graph.hpp>
#include <nn/dnn/detail/stream_order.hpp>

namespace nn::detail {

/// Every tensor of a graph, on the current device. Inputs are random numbers within 1/16, the same in each program: results are
/// not all alike, which would hide what goes wrong, nor huge.
class ConvOperands {
public:
    ConvOperands(ConvGraph kind, const Conv2dShape& shape, std::size_t element_bytes);

    const TensorAddresses& addresses() const { return addresses_; }

    /// Memory for a plan's work. An earlier one is invalid afterwards.
    void* workspace(std::size_t bytes) { return memory_.workspace(bytes).data(); }

    /// As StreamOrderCheck, of a call that uses these addresses and the latest workspace. Unless it is deterministic, its outputs
    /// may differ by 1 % of their norm.
    bool keeps_stream_order(const StreamOrderCheck::Stream& stream, bool is_deterministic,
                            const StreamOrderCheck::Call& call);

private:
    struct Part {
        std::size_t offset; // bytes, from the first output
        std::size_t bytes;
        std::size_t element_bytes;
    };

    static std::size_t bytes_of_all(ConvGraph kind, const Conv2dShape& shape, std::size_t element_bytes,
                                    bool written);

    StreamOrderCheck memory_;
    std::vector<Part> outputs_;
    TensorAddresses addresses_{};
};

} // namespace nn::detail

/// \file
/// A convolution, alone or with what is fused into it, as a graph of cuDNN. Includes cudnn-frontend.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <cudnn_frontend.h>

#include <nn/conv/conv2d.hpp>

namespace nn::detail {

namespace fe = cudnn_frontend;

/// What is computed. `PatchConv2d` and `CudnnConv2d` say the formulas.
enum class ConvGraph {
    forward,
    input_gradient,
    weight_gradient,
    bias,
    bias_relu,
    bias_residual,
    bias_residual_relu,
    sums, ///< forward, and sums of the output and its squares
};

/// For keys of the plan file.
const char* name_of(ConvGraph graph);

/// The tensors of all graphs. Execution takes their addresses in this order.
enum Tensor : std::int64_t {
    in_tensor = 1,
    weights_tensor,
    out_tensor,
    bias_tensor,
    residual_tensor,
    sum_tensor,
    square_sum_tensor,
    tensor_end,
};

/// Addresses by tensor; null for those that a graph does not use.
using TensorAddresses = std::array<void*, tensor_end>;

/// Whether the graph reads or writes the tensor.
bool uses(ConvGraph graph, Tensor tensor);

/// Whether the graph writes the tensor; it never reads that, too.
bool writes(ConvGraph graph, Tensor tensor);

/// Bytes of an element of a tensor, where maps and weights have `element_bytes`.
std::size_t element_bytes_of(Tensor tensor, std::size_t element_bytes);

/// Bytes of a tensor, for the operands that plans are timed and checked on.
std::size_t bytes_of(const Conv2dShape& shape, Tensor tensor, std::size_t element_bytes);

/// The graph of maps and weights of `type`, without plans.
std::shared_ptr<fe::graph::Graph> make_conv_graph(ConvGraph graph, const Conv2dShape& shape,
                                                  fe::DataType_t type);

} // namespace nn::detail

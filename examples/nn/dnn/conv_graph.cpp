#include <nn/dnn/detail/conv_graph.hpp>

#include <vector>

namespace nn::detail {
namespace {

using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;
using Sides = std::vector<std::int64_t>;

std::int64_t side(std::size_t value) { return static_cast<std::int64_t>(value); }

/// Builds one graph. cuDNN names sides N, C, H, W whatever their order in memory; strides say channels last.
class Builder {
public:
    Builder(const Conv2dShape& shape, const GraphTypes& types)
        : shape_(shape), type_(types.maps), scale_type_(types.scale) {
        graph_->set_io_data_type(types.maps)
            .set_intermediate_data_type(types.intermediate)
            .set_compute_data_type(fe::DataType_t::FLOAT);
    }

    std::shared_ptr<fe::graph::Graph> graph() const { return graph_; }

    Attributes in(Tensor tensor = in_tensor) {
        return input(tensor, map_sides(shape_.in_channels, shape_.height, shape_.width), type_);
    }
    Attributes out_map(Tensor tensor) {
        return input(tensor, map_sides(shape_.out_channels, shape_.out_height(), shape_.out_width()), type_);
    }
    Attributes weights() { return input(weights_tensor, weight_sides(), type_); }
    Attributes channels(Tensor tensor, std::size_t count) {
        const bool is_scale = tensor == scale_tensor || tensor == shift_tensor;
        return input(tensor, {1, side(count), 1, 1}, is_scale ? scale_type_ : fe::DataType_t::FLOAT);
    }

    Attributes pointwise(fe::PointwiseMode_t mode, const Attributes& a, const Attributes& b) {
        return graph_->pointwise(
            a, b,
            fe::graph::Pointwise_attributes().set_mode(mode).set_compute_data_type(fe::DataType_t::FLOAT));
    }
    Attributes relu(const Attributes& a) {
        return graph_->pointwise(a, fe::graph::Pointwise_attributes()
                                        .set_mode(fe::PointwiseMode_t::RELU_FWD)
                                        .set_compute_data_type(fe::DataType_t::FLOAT));
    }
    /// `scale * in + bias` of the convolution's input.
    Attributes scaled(const Attributes& map) {
        const Attributes product =
            pointwise(fe::PointwiseMode_t::MUL, map, channels(scale_tensor, shape_.in_channels));
        return pointwise(fe::PointwiseMode_t::ADD, product, channels(shift_tensor, shape_.in_channels));
    }

    Attributes forward(const Attributes& map) {
        const Attributes result =
            graph_->conv_fprop(map, weights(), geometry(fe::graph::Conv_fprop_attributes()));
        set_sides(result, map_sides(shape_.out_channels, shape_.out_height(), shape_.out_width()));
        return result;
    }
    Attributes input_gradient() {
        const Attributes result =
            graph_->conv_dgrad(out_map(out_tensor), weights(), geometry(fe::graph::Conv_dgrad_attributes()));
        set_sides(result, map_sides(shape_.in_channels, shape_.height, shape_.width));
        return result;
    }
    Attributes weight_gradient(const Attributes& map) {
        const Attributes result =
            graph_->conv_wgrad(out_map(out_tensor), map, geometry(fe::graph::Conv_wgrad_attributes()));
        set_sides(result, weight_sides());
        return result;
    }

    void result(const Attributes& tensor, Tensor uid) { output(tensor, uid, type_); }
    void sum_result(const Attributes& tensor, Tensor uid) { output(tensor, uid, fe::DataType_t::FLOAT); }
    void sums(const Attributes& map) {
        const auto [sum, squares] = graph_->genstats(
            map, fe::graph::Genstats_attributes().set_compute_data_type(fe::DataType_t::FLOAT));
        sum_result(sum, sum_tensor);
        sum_result(squares, square_sum_tensor);
    }
    /// The ReLU's gradient and the sums of the batch normalisation before it, whose input is `in`.
    void normalised_gradient(const Attributes& slope) {
        const Attributes map = in(normalised_in_tensor);
        const Attributes masked = pointwise(fe::PointwiseMode_t::RELU_BWD, slope, scaled(map));
        const auto [dscale, dbias, equal_dy, equal_x, equal_bias] = graph_->dbn_weight(
            masked, map, channels(mean_tensor, shape_.in_channels),
            channels(inverse_tensor, shape_.in_channels), channels(bias_tensor, shape_.in_channels),
            fe::graph::DBN_weight_attributes().set_compute_data_type(fe::DataType_t::FLOAT));
        result(masked, in_tensor);
        sum_result(dscale, weight_sum_tensor);
        sum_result(dbias, bias_sum_tensor);
        sum_result(equal_dy, equal_scale_gradient_tensor);
        sum_result(equal_x, equal_scale_in_tensor);
        sum_result(equal_bias, equal_bias_tensor);
    }

private:
    Sides map_sides(std::size_t channels, std::size_t height, std::size_t width) const {
        return {side(shape_.images), side(channels), side(height), side(width)};
    }
    Sides weight_sides() const {
        return {side(shape_.out_channels), side(shape_.in_channels), side(shape_.kernel),
                side(shape_.kernel)};
    }
    static Sides strides(const Sides& sides) {
        return {sides[1] * sides[2] * sides[3], 1, sides[1] * sides[3], sides[1]};
    }
    static void set_sides(const Attributes& tensor, const Sides& sides) {
        tensor->set_dim(sides).set_stride(strides(sides));
    }
    Attributes input(Tensor uid, const Sides& sides, fe::DataType_t type) {
        return graph_->tensor(fe::graph::Tensor_attributes()
                                  .set_uid(uid)
                                  .set_dim(sides)
                                  .set_stride(strides(sides))
                                  .set_data_type(type));
    }
    void output(const Attributes& tensor, Tensor uid, fe::DataType_t type) {
        tensor->set_output(true).set_uid(uid).set_data_type(type);
    }
    template <class Convolution>
    Convolution geometry(Convolution attributes) const {
        attributes.set_padding({side(shape_.padding), side(shape_.padding)})
            .set_stride({side(shape_.stride), side(shape_.stride)})
            .set_dilation({1, 1});
        return attributes;
    }

    Conv2dShape shape_;
    fe::DataType_t type_;
    fe::DataType_t scale_type_;
    std::shared_ptr<fe::graph::Graph> graph_ = std::make_shared<fe::graph::Graph>();
};

bool has_bias(ConvGraph graph) { return graph >= ConvGraph::bias && graph <= ConvGraph::bias_residual_relu; }
bool has_residual(ConvGraph graph) {
    return graph == ConvGraph::bias_residual || graph == ConvGraph::bias_residual_relu;
}
bool has_relu(ConvGraph graph) {
    return graph == ConvGraph::bias_relu || graph == ConvGraph::bias_residual_relu;
}
bool has_sums(ConvGraph graph) { return graph == ConvGraph::sums || graph == ConvGraph::normalised_sums; }
bool is_normalised(ConvGraph graph) { return graph >= ConvGraph::normalised_sums; }

} // namespace

const char* name_of(ConvGraph graph) {
    constexpr std::array names{"forward",
                               "input gradient",
                               "weight gradient",
                               "forward, bias",
                               "forward, bias, ReLU",
                               "forward, bias, residual",
                               "forward, bias, residual, ReLU",
                               "forward, sums",
                               "scale, bias, ReLU, forward, sums",
                               "scale, bias, ReLU, weight gradient",
                               "input gradient, ReLU, batch norm's sums"};
    static_assert(names.size() == all_conv_graphs.size());
    return names.at(static_cast<std::size_t>(graph));
}

bool uses(ConvGraph graph, Tensor tensor) {
    const bool is_last = graph == ConvGraph::input_gradient_normalised;
    switch (tensor) {
    case in_tensor:
    case weights_tensor:
    case out_tensor:
        return true;
    case bias_tensor:
        return has_bias(graph) || is_last;
    case residual_tensor:
        return has_residual(graph);
    case scale_tensor:
    case shift_tensor:
        return is_normalised(graph);
    case sum_tensor:
    case square_sum_tensor:
        return has_sums(graph);
    default:
        return is_last;
    }
}

bool writes(ConvGraph graph, Tensor tensor) {
    switch (graph) {
    case ConvGraph::input_gradient:
        return tensor == in_tensor;
    case ConvGraph::weight_gradient:
    case ConvGraph::normalised_weight_gradient:
        return tensor == weights_tensor;
    case ConvGraph::input_gradient_normalised:
        return tensor == in_tensor || (tensor >= weight_sum_tensor && tensor <= equal_bias_tensor);
    default:
        return tensor == out_tensor ||
               ((tensor == sum_tensor || tensor == square_sum_tensor) && has_sums(graph));
    }
}

std::size_t element_bytes_of(Tensor tensor, std::size_t element_bytes) {
    switch (tensor) {
    case in_tensor:
    case weights_tensor:
    case out_tensor:
    case residual_tensor:
    case normalised_in_tensor:
        return element_bytes;
    default:
        return sizeof(float);
    }
}

std::size_t bytes_of(const Conv2dShape& shape, Tensor tensor, std::size_t element_bytes) {
    switch (tensor) {
    case in_tensor:
    case normalised_in_tensor:
        return shape.in_size() * element_bytes;
    case weights_tensor:
        return shape.weight_size() * element_bytes;
    case out_tensor:
    case residual_tensor:
        return shape.out_size() * element_bytes;
    default:
        return std::max(shape.in_channels, shape.out_channels) * sizeof(float);
    }
}

std::shared_ptr<fe::graph::Graph> make_conv_graph(ConvGraph graph, const Conv2dShape& shape,
                                                  const GraphTypes& types) {
    Builder builder(shape, types);
    switch (graph) {
    case ConvGraph::input_gradient:
        builder.result(builder.input_gradient(), in_tensor);
        break;
    case ConvGraph::weight_gradient:
        builder.result(builder.weight_gradient(builder.in()), weights_tensor);
        break;
    case ConvGraph::normalised_weight_gradient:
        builder.result(builder.weight_gradient(builder.relu(builder.scaled(builder.in()))), weights_tensor);
        break;
    case ConvGraph::input_gradient_normalised:
        builder.normalised_gradient(builder.input_gradient());
        break;
    default: {
        const Attributes in = builder.in();
        Attributes map = builder.forward(is_normalised(graph) ? builder.relu(builder.scaled(in)) : in);
        if (has_bias(graph)) {
            map = builder.pointwise(fe::PointwiseMode_t::ADD, map,
                                    builder.channels(bias_tensor, shape.out_channels));
        }
        if (has_residual(graph))
            map = builder.pointwise(fe::PointwiseMode_t::ADD, map, builder.out_map(residual_tensor));
        if (has_relu(graph))
            map = builder.relu(map);
        if (has_sums(graph))
            builder.sums(map);
        builder.result(map, out_tensor);
    }
    }
    return builder.graph();
}

} // namespace nn::detail

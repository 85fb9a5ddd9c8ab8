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
    Builder(const Conv2dShape& shape, fe::DataType_t type) : shape_(shape), type_(type) {
        graph_->set_io_data_type(type)
            .set_intermediate_data_type(fe::DataType_t::FLOAT)
            .set_compute_data_type(fe::DataType_t::FLOAT);
    }

    std::shared_ptr<fe::graph::Graph> graph() const { return graph_; }

    Attributes in() {
        return input(in_tensor, map_sides(shape_.in_channels, shape_.height, shape_.width), type_);
    }
    Attributes out_map(Tensor tensor) {
        return input(tensor, map_sides(shape_.out_channels, shape_.out_height(), shape_.out_width()), type_);
    }
    Attributes weights() { return input(weights_tensor, weight_sides(), type_); }
    Attributes bias() {
        return input(bias_tensor, {1, side(shape_.out_channels), 1, 1}, fe::DataType_t::FLOAT);
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
    std::shared_ptr<fe::graph::Graph> graph_ = std::make_shared<fe::graph::Graph>();
};

bool has_bias(ConvGraph graph) { return graph >= ConvGraph::bias && graph <= ConvGraph::bias_residual_relu; }
bool has_residual(ConvGraph graph) {
    return graph == ConvGraph::bias_residual || graph == ConvGraph::bias_residual_relu;
}
bool has_relu(ConvGraph graph) {
    return graph == ConvGraph::bias_relu || graph == ConvGraph::bias_residual_relu;
}

} // namespace

const char* name_of(ConvGraph graph) {
    constexpr std::array names{"forward",
                               "input gradient",
                               "weight gradient",
                               "forward, bias",
                               "forward, bias, ReLU",
                               "forward, bias, residual",
                               "forward, bias, residual, ReLU",
                               "forward, sums"};
    static_assert(names.size() == static_cast<std::size_t>(ConvGraph::sums) + 1);
    return names.at(static_cast<std::size_t>(graph));
}

bool uses(ConvGraph graph, Tensor tensor) {
    switch (tensor) {
    case in_tensor:
    case weights_tensor:
    case out_tensor:
        return true;
    case bias_tensor:
        return has_bias(graph);
    case residual_tensor:
        return has_residual(graph);
    default:
        return graph == ConvGraph::sums;
    }
}

bool writes(ConvGraph graph, Tensor tensor) {
    switch (graph) {
    case ConvGraph::input_gradient:
        return tensor == in_tensor;
    case ConvGraph::weight_gradient:
        return tensor == weights_tensor;
    default:
        return tensor == out_tensor ||
               (graph == ConvGraph::sums && (tensor == sum_tensor || tensor == square_sum_tensor));
    }
}

std::size_t element_bytes_of(Tensor tensor, std::size_t element_bytes) {
    switch (tensor) {
    case in_tensor:
    case weights_tensor:
    case out_tensor:
    case residual_tensor:
        return element_bytes;
    default:
        return sizeof(float);
    }
}

std::size_t bytes_of(const Conv2dShape& shape, Tensor tensor, std::size_t element_bytes) {
    switch (tensor) {
    case in_tensor:
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
                                                  fe::DataType_t type) {
    Builder builder(shape, type);
    switch (graph) {
    case ConvGraph::input_gradient:
        builder.result(builder.input_gradient(), in_tensor);
        break;
    case ConvGraph::weight_gradient:
        builder.result(builder.weight_gradient(builder.in()), weights_tensor);
        break;
    default: {
        Attributes map = builder.forward(builder.in());
        if (has_bias(graph)) {
            map = builder.pointwise(fe::PointwiseMode_t::ADD, map, builder.bias());
        }
        if (has_residual(graph))
            map = builder.pointwise(fe::PointwiseMode_t::ADD, map, builder.out_map(residual_tensor));
        if (has_relu(graph))
            map = builder.relu(map);
        if (graph == ConvGraph::sums)
            builder.sums(map);
        builder.result(map, out_tensor);
    }
    }
    return builder.graph();
}

} // namespace nn::detail

/// \file
/// Plans of cuDNN for convolutions: chosen, timed, kept, and run. Includes cudnn-frontend.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cudnn.h>

#include <nn/dnn/cudnn_conv2d.hpp>
#include <nn/dnn/detail/conv_graph.hpp>
#include <nn/dnn/detail/plan_file.hpp>
#include <sluice/memory/buffer.hpp>

namespace nn::detail {

/// Throws `sluice::Error` with cuDNN's text unless `status` is good.
void require_cudnn(cudnnStatus_t status, const char* what);
void require_graph(fe::error_t status, const std::string& what);

/// Addresses by tensor; null for those that a graph does not use.
using TensorAddresses = std::array<void*, tensor_end>;

/// One graph of one shape, ready to run; without a graph where cuDNN has no plan for it.
struct ConvPlan {
    std::shared_ptr<fe::graph::Graph> graph;
    std::int64_t index = 0;
    std::size_t workspace = 0;
    std::string name;

    /// Enqueues it on the handle's stream. Allocates nothing.
    void run(cudnnHandle_t handle, ConvGraph kind, const TensorAddresses& addresses, void* workspace) const;
};

/// The plans of one CudnnConv2d.
class ConvPlans {
public:
    ConvPlans(const Conv2dOptions& options, fe::DataType_t type, std::size_t element_bytes);
    ~ConvPlans();
    ConvPlans(const ConvPlans&) = delete;
    ConvPlans& operator=(const ConvPlans&) = delete;

    /// The plan, made when it is asked for first; throws while `stream` is being captured. Without a graph if cuDNN has
    /// none.
    const ConvPlan& plan(sluice::CudaStreamRef stream, ConvGraph kind, const Conv2dShape& shape);

    /// Enqueues a plan that has a graph.
    void run(sluice::CudaStreamRef stream, ConvGraph kind, const ConvPlan& plan,
             const TensorAddresses& addresses);

    ConvSupport probe(ConvGraph kind, const Conv2dShape& shape, const GraphTypes& types);

    fe::DataType_t type() const noexcept { return type_; }

private:
    using Key = std::pair<ConvGraph, Conv2dShape>;

    ConvPlan make(ConvGraph kind, const Conv2dShape& shape);
    // Gives a graph the plans that may be chosen among; strictly, none whose sums are rounded to float16.
    fe::error_t prepare(fe::graph::Graph& graph, bool is_strict) const;
    std::string key(ConvGraph kind, const Conv2dShape& shape) const;
    bool choose_named(ConvPlan& plan, const std::string& name) const;
    bool choose_first(ConvPlan& plan) const;
    void choose_fastest(ConvPlan& plan, ConvGraph kind, const Conv2dShape& shape) const;
    void reserve(std::size_t bytes);

    Conv2dOptions options_;
    fe::DataType_t type_;
    std::size_t element_bytes_;
    cudnnHandle_t handle_ = nullptr;
    std::string device_;
    PlanFile file_;
    std::map<Key, ConvPlan> plans_;
    // The last is the largest; a graph that was captured may still use the others.
    std::vector<sluice::DeviceBuffer<std::byte, sluice::Cuda>> workspaces_;
};

} // namespace nn::detail

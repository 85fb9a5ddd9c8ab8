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

class PlanTrial;

/// One graph of one shape, ready to run; without a graph where cuDNN has no plan for it that keeps a stream's order.
struct ConvPlan {
    std::shared_ptr<fe::graph::Graph> graph;
    std::int64_t index = 0;
    std::size_t workspace = 0;
    std::string name;
    int out_of_order = 0; ///< plans that were left out since they do not wait for the kernel before them

    /// Enqueues it on the handle's stream. Allocates nothing.
    void run(cudnnHandle_t handle, ConvGraph kind, const TensorAddresses& addresses, void* workspace) const;
};

/// The plans of one CudnnConv2d. Each is checked when it is chosen, see StreamOrderCheck: some of cuDNN's do not keep a stream's
/// order.
class ConvPlans {
public:
    ConvPlans(const Conv2dOptions& options, fe::DataType_t type, std::size_t element_bytes);
    virtual ~ConvPlans();
    ConvPlans(const ConvPlans&) = delete;
    ConvPlans& operator=(const ConvPlans&) = delete;

    /// The plan, made when it is asked for first; throws while `stream` is being captured. Without a graph if cuDNN has
    /// none, or if `run_unfused` takes less time.
    const ConvPlan& plan(sluice::CudaStreamRef stream, ConvGraph kind, const Conv2dShape& shape);

    /// Enqueues a plan that has a graph.
    void run(sluice::CudaStreamRef stream, ConvGraph kind, const ConvPlan& plan,
             const TensorAddresses& addresses);

    fe::DataType_t type() const noexcept { return type_; }

    /// Enqueues what a fused plan of inference computes, as a plain convolution and a kernel behind it.
    virtual void run_unfused(sluice::CudaStreamRef stream, ConvGraph kind, const Conv2dShape& shape,
                             const TensorAddresses& addresses) = 0;

private:
    using Key = std::pair<ConvGraph, Conv2dShape>;

    ConvPlan make(ConvGraph kind, const Conv2dShape& shape);
    // Gives a graph the plans that may be chosen among; strictly, none whose sums are rounded to float16.
    fe::error_t prepare(fe::graph::Graph& graph, bool is_strict) const;
    std::string key(ConvGraph kind, const Conv2dShape& shape) const;
    bool choose_named(ConvPlan& plan, const std::string& name) const;
    // These return false where no plan keeps the order. After those that are timed, at most `most` are tried in cuDNN's order.
    bool choose(ConvPlan& plan, ConvGraph kind, const Conv2dShape& shape);
    bool is_faster_unfused(const ConvPlan& plan, PlanTrial& trial, ConvGraph kind, const Conv2dShape& shape);
    bool choose_first(ConvPlan& plan, PlanTrial* trial, std::int64_t begin, int most) const;
    bool choose_fastest(ConvPlan& plan, PlanTrial& trial, int most) const;
    void reserve(std::size_t bytes);

    Conv2dOptions options_;
    fe::DataType_t type_;
    std::size_t element_bytes_;
    cudnnHandle_t handle_ = nullptr;
    std::string device_;
    bool checks_order_ = false;
    PlanFile file_;
    std::map<Key, ConvPlan> plans_;
    // The last is the largest; a graph that was captured may still use the others.
    std::vector<sluice::DeviceBuffer<std::byte, sluice::Cuda>> workspaces_;
};

} // namespace nn::detail

/// \file
/// The box losses on CUDA, beside the ragged kernel launched by hand. See giou.hpp.
#include "giou.hpp"

#include <cuda_runtime.h>

#include <nn/losses/boxes/detail/few_boxes.cuh>
#include <nn/losses/boxes/detail/kernels.cuh>

#include "support/cuda_baselines.cuh"

namespace {

using bench::GiouData;
using bench::Variant;
using sluice::Cuda;

/// A graph of one kernel, made node by node and launched on a stream of its own.
template <class P>
class KernelBaseline {
public:
    explicit KernelBaseline(bool backward) {
        const auto predictions = data_.predictions();
        nn::detail::RowArguments<P, std::uint8_t, P> arguments{.predictions = predictions.data(),
                                                               .rows = bench::giou_rows,
                                                               .width = bench::giou_width,
                                                               .targets = data_.targets(),
                                                               .gradient =
                                                                   backward ? data_.gradient() : nullptr,
                                                               .mean = data_.mean(),
                                                               .partials = data_.scratch().partials(),
                                                               .ticket = data_.scratch().ticket(),
                                                               .scale = 1.0f,
                                                               .work = 1,
                                                               .rows_per_tile = nn::detail::rows_at_once};
        void* addresses[] = {&arguments};
        cudaKernelNodeParams kernel{};
        kernel.kernelParams = addresses;
        const bool cluster = nn::has_clusters();
        if (cluster) {
            const unsigned clusters = backward ? 1 + nn::detail::few_clusters_of_zeros : 1;
            kernel.func = backward ? few_boxes_kernel<true>() : few_boxes_kernel<false>();
            kernel.gridDim = dim3(clusters * nn::detail::few_blocks);
            kernel.blockDim = dim3(nn::detail::few_threads);
        } else {
            kernel.func = backward ? rows_kernel<true>() : rows_kernel<false>();
            kernel.gridDim = dim3(bench::giou_rows / nn::detail::rows_at_once);
            kernel.blockDim = dim3(nn::detail::loss_threads);
        }
        cudaGraph_t graph = nullptr;
        cudaGraphNode_t node = nullptr;
        CHECK(cudaGraphCreate(&graph, 0));
        CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &kernel));
        if (cluster) {
            cudaLaunchAttributeValue size{};
            size.clusterDim.x = nn::detail::few_blocks;
            size.clusterDim.y = 1;
            size.clusterDim.z = 1;
            CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &size));
        }
        CHECK(cudaGraphInstantiate(&executable_, graph, 0));
        CHECK(cudaGraphDestroy(graph));
        CHECK(cudaGraphUpload(executable_, stream_));
        CHECK(cudaStreamSynchronize(stream_));
    }
    KernelBaseline(const KernelBaseline&) = delete;
    KernelBaseline& operator=(const KernelBaseline&) = delete;
    ~KernelBaseline() {
        cudaGraphExecDestroy(executable_);
        cudaStreamDestroy(stream_);
    }

    void step() { CHECK(cudaGraphLaunch(executable_, stream_)); }
    void sync() { CHECK(cudaStreamSynchronize(stream_)); }

private:
    template <bool backward>
    static void* few_boxes_kernel() {
        return reinterpret_cast<void*>(
            &nn::detail::few_boxes_kernel<nn::ArticleGiou, backward, P, std::uint8_t, P>);
    }
    template <bool backward>
    static void* rows_kernel() {
        return reinterpret_cast<void*>(
            &nn::detail::rows_kernel<nn::ArticleGiou, backward, P, std::uint8_t, P>);
    }

    GiouData<P, Cuda> data_;
    cudaStream_t stream_ = bench::make_stream();
    cudaGraphExec_t executable_ = nullptr;
};

template <class P>
auto baseline = [](bool backward) { return KernelBaseline<P>{backward}; };

bench::Effort effort_for(Variant variant, bool as_graph) {
    constexpr int bursts = 20;
    constexpr int repetitions = 9;
    if (variant == Variant::looped) // a thousand launches
        return {1, bursts, repetitions};
    const bool many = variant == Variant::padded || variant == Variant::concatenated;
    return {many && !as_graph ? 20 : 100, bursts, repetitions};
}

template <class P, class Formula>
void add_variant(const std::string& prefix, Variant variant) {
    for (const bool backward : {false, true}) {
        for (const bool as_graph : {false, true}) {
            bench::add_giou<P, Cuda, Formula>(
                prefix + "/" + name_of(variant) + (backward ? "/both" : "/forward") +
                    (as_graph ? "/graph" : "/eager"),
                {variant, backward, as_graph}, effort_for(variant, as_graph), baseline<P>);
        }
    }
}

} // namespace

void bench::add_cuda_benchmarks() {
    if (!describe_device())
        return;
    for (const Variant variant : variants)
        add_variant<float, nn::ArticleGiou>("cuda/float32", variant);
    for (const Variant variant : {Variant::fused, Variant::conditional, Variant::ragged})
        add_variant<nn::Bfloat16, nn::ArticleGiou>("cuda/bfloat16", variant);
    add_variant<float, nn::TorchvisionGiouLoss>("cuda/float32/torchvision", Variant::ragged);
    for (const unsigned work : {1u, 4u, 16u, 64u, 256u}) {
        for (const Variant variant : {Variant::fused, Variant::conditional, Variant::ragged}) {
            add_giou<float, Cuda, nn::ArticleGiou>(
                "cuda/work:" + std::to_string(work) + "/" + name_of(variant), {variant, false, true, work},
                {.steps = work > 16 ? 10 : 100, .bursts = 10, .repetitions = 5}, baseline<float>);
        }
    }
}

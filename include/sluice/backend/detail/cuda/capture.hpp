// What a stream's capture has come to, and where it goes on.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstddef>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/error.hpp>

namespace sluice::detail {

/// The capture of a stream.
struct CudaCapture {
    cudaGraph_t graph = nullptr;   ///< null: the stream is not being captured, or no longer validly
    unsigned long long number = 0; ///< tells captures into graphs at the same address apart
    List<cudaGraphNode_t> last;    ///< what the stream's next node comes after
#if CUDART_VERSION >= 12030
    List<cudaGraphEdgeData> edges; ///< to that node, one for each of `last`; none: plain ones

    const cudaGraphEdgeData* edge_data() const noexcept { return edges.empty() ? nullptr : edges.data(); }
#endif
};

inline CudaCapture capture_of(cudaStream_t stream) {
    CudaCapture capture;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* last = nullptr;
    std::size_t count = 0;
#if CUDART_VERSION >= 12030
    const cudaGraphEdgeData* edges = nullptr;
#if CUDART_VERSION >= 13000
    SLUICE_CUDA_CHECK(
        cudaStreamGetCaptureInfo(stream, &status, &capture.number, &graph, &last, &edges, &count));
#else
    SLUICE_CUDA_CHECK(
        cudaStreamGetCaptureInfo_v3(stream, &status, &capture.number, &graph, &last, &edges, &count));
#endif
#else
    SLUICE_CUDA_CHECK(cudaStreamGetCaptureInfo_v2(stream, &status, &capture.number, &graph, &last, &count));
#endif
    if (status != cudaStreamCaptureStatusActive)
        return {};
    capture.graph = graph;
    for (std::size_t i = 0; i < count; ++i)
        capture.last.push_back(last[i]);
#if CUDART_VERSION >= 12030
    for (std::size_t i = 0; edges != nullptr && i < count; ++i)
        capture.edges.push_back(edges[i]);
#endif
    return capture;
}

inline CudaCapture required_capture_of(cudaStream_t stream) {
    CudaCapture capture = capture_of(stream);
    if (capture.graph == nullptr)
        throw Error("the stream is not being captured, or its capture has become invalid");
    return capture;
}

/// The stream's next node comes after `capture.last`, and after nothing else. What it had come to before need not be joined.
inline void continue_capture_after(cudaStream_t stream, CudaCapture capture) {
    constexpr unsigned flags = cudaStreamSetCaptureDependencies;
    const std::size_t count = capture.last.size();
#if CUDART_VERSION >= 12030
#if CUDART_VERSION >= 13000
    SLUICE_CUDA_CHECK(
        cudaStreamUpdateCaptureDependencies(stream, capture.last.data(), capture.edge_data(), count, flags));
#else
    SLUICE_CUDA_CHECK(cudaStreamUpdateCaptureDependencies_v2(stream, capture.last.data(), capture.edge_data(),
                                                             count, flags));
#endif
#else
    SLUICE_CUDA_CHECK(cudaStreamUpdateCaptureDependencies(stream, capture.last.data(), count, flags));
#endif
}

} // namespace sluice::detail

#endif

// What the Cuda backend's graphs are made of.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sluice/backend/detail/list.hpp>

namespace sluice {

/// The part of `Cuda` that looks into graphs. See the concept `GraphBackend` for what each function does.
struct CudaGraphContents {
    static std::size_t node_count(cudaGraph_t graph);
    static std::size_t edge_count(cudaGraph_t graph);
    static void write_dot(cudaGraph_t graph, const char* path);
    /// Of the nodes' types and parameters, kernels' arguments included. Of the addresses in `own` it has only which one, and of
    /// addresses in memory that the graph allocates and frees only where in which block.
    static std::uint64_t signature(cudaGraph_t graph, const std::vector<const void*>& own = {});
    /// The signature covers kernels' arguments, by which a change of captured work shows.
    static constexpr bool compares_captures = true;
    /// Where two graphs of different signatures differ first, such as "argument 0 of kernel scale(float*, int), bytes 4 to 7 of 8".
    static std::string difference(cudaGraph_t a, const std::vector<const void*>& own_of_a, cudaGraph_t b,
                                  const std::vector<const void*>& own_of_b);
    /// The device memory that nodes name, kernels' arguments included, and that is not the graph's own.
    static std::vector<const void*> device_pointers(cudaGraph_t graph);
    static bool is_device_memory(const void* pointer);

private:
    static detail::List<cudaGraphNode_t> nodes_of(cudaGraph_t graph);
    static cudaGraphNodeType type_of(cudaGraphNode_t node);
    template <class Visit>
    static void visit_words(cudaGraph_t graph, Visit&& visit);
    // Memory that a graph allocates and frees.
    struct InnerMemory {
        std::uintptr_t begin = 0;
        std::size_t bytes = 0;
        bool is_freed = false;
    };
    static detail::List<InnerMemory> inner_memory_of(cudaGraph_t graph);
    static std::size_t place_in(const detail::List<InnerMemory>& inner, std::uintptr_t address) noexcept;
    // What a graph's signature is made of, one by one.
    struct Word {
        std::string bytes;
        const void* kernel = nullptr; // whose argument it is
        std::size_t argument = 0;
    };
    static detail::List<Word> words_of(cudaGraph_t graph, const std::vector<const void*>& own);
};

} // namespace sluice

#endif

// Bodies of graph_contents.hpp.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/cuda/graph_contents.hpp>
#include <sluice/backend/detail/demangled.hpp>

namespace sluice {

SLUICE_BODY std::size_t CudaGraphContents::edge_count(cudaGraph_t graph) {
    std::size_t edges = 0;
#if CUDART_VERSION >= 13000
    SLUICE_CUDA_CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
#else
    SLUICE_CUDA_CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, &edges));
#endif
    return edges;
}

SLUICE_BODY void CudaGraphContents::write_dot(cudaGraph_t graph, const char* path) {
    SLUICE_CUDA_CHECK(cudaGraphDebugDotPrint(graph, path, cudaGraphDebugDotFlagsVerbose));
}

SLUICE_BODY bool CudaGraphContents::is_device_memory(const void* pointer) {
    cudaPointerAttributes attributes{};
    const cudaError_t before = cudaPeekAtLastError();
    const cudaError_t error = cudaPointerGetAttributes(&attributes, pointer);
    detail::forget_cuda_error(error, before);
    return error == cudaSuccess && attributes.type == cudaMemoryTypeDevice;
}

SLUICE_BODY detail::List<cudaGraphNode_t> CudaGraphContents::nodes_of(cudaGraph_t graph) {
    std::size_t count = 0;
    SLUICE_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    detail::List<cudaGraphNode_t> nodes(count);
    if (count > 0)
        SLUICE_CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
    return nodes;
}

SLUICE_BODY cudaGraphNodeType CudaGraphContents::type_of(cudaGraphNode_t node) {
    cudaGraphNodeType type = cudaGraphNodeTypeCount;
    const cudaError_t before = cudaPeekAtLastError();
    const cudaError_t error = cudaGraphNodeGetType(node, &type);
    if (error == cudaErrorUnknown) { // what CUDA 12.4 says of conditional nodes
        detail::forget_cuda_error(error, before);
        return cudaGraphNodeTypeCount;
    }
    detail::check_cuda(error, "cudaGraphNodeGetType(node, &type)", __FILE__, __LINE__);
    return type;
}

SLUICE_BODY std::size_t CudaGraphContents::node_count(cudaGraph_t graph) {
    std::size_t count = 0;
    for (const cudaGraphNode_t node : nodes_of(graph)) {
        ++count;
        if (type_of(node) != cudaGraphNodeTypeGraph)
            continue;
        cudaGraph_t child = nullptr;
        SLUICE_CUDA_CHECK(cudaGraphChildGraphNodeGetGraph(node, &child));
        count += node_count(child);
    }
    return count;
}

// Calls `visit(const void* memory, std::size_t bytes, bool is_argument, const void* kernel)` for all that describes the graph's
// nodes; `kernel` is null unless it is a kernel's argument.
template <class Visit>
void CudaGraphContents::visit_words(cudaGraph_t graph, Visit&& visit) {
    const cudaError_t before = cudaPeekAtLastError();
    for (const cudaGraphNode_t node : nodes_of(graph)) {
        const cudaGraphNodeType type = type_of(node);
        visit(&type, sizeof(type), false, nullptr);
        if (type == cudaGraphNodeTypeKernel) {
            cudaKernelNodeParams kernel{};
            const cudaError_t error = cudaGraphKernelNodeGetParams(node, &kernel);
            // Kernels of a library that brings a runtime of its own, or launched by the driver's API: this runtime
            // does not know them, and they stay unseen.
            if (error == cudaErrorInvalidDeviceFunction) {
                detail::forget_cuda_error(error, before);
                continue;
            }
            detail::check_cuda(error, "cudaGraphKernelNodeGetParams(node, &kernel)", __FILE__, __LINE__);
            const unsigned shape[] = {kernel.gridDim.x,     kernel.gridDim.y,  kernel.gridDim.z,
                                      kernel.blockDim.x,    kernel.blockDim.y, kernel.blockDim.z,
                                      kernel.sharedMemBytes};
            visit(&kernel.func, sizeof(kernel.func), false, nullptr);
            visit(shape, sizeof(shape), false, nullptr);
#if CUDART_VERSION >= 12040
            std::size_t offset = 0;
            std::size_t bytes = 0;
            for (std::size_t index = 0; kernel.kernelParams != nullptr; ++index) {
                const cudaError_t found = cudaFuncGetParamInfo(kernel.func, index, &offset, &bytes);
                if (found != cudaSuccess) { // there are no more
                    detail::forget_cuda_error(found, before);
                    break;
                }
                visit(kernel.kernelParams[index], bytes, true, kernel.func);
            }
#endif
        } else if (type == cudaGraphNodeTypeMemcpy) {
            cudaMemcpy3DParms copy{};
            // Not to be had for copies of one dimension between some kinds of memory.
            const cudaError_t found = cudaGraphMemcpyNodeGetParams(node, &copy);
            if (found == cudaSuccess) {
                visit(&copy.srcPtr.ptr, sizeof(void*), true, nullptr);
                visit(&copy.dstPtr.ptr, sizeof(void*), true, nullptr);
                visit(&copy.extent, sizeof(copy.extent), false, nullptr);
                if (copy.extent.height > 1) { // Of one row it tells nothing.
                    visit(&copy.srcPtr.pitch, sizeof(copy.srcPtr.pitch), false, nullptr);
                    visit(&copy.dstPtr.pitch, sizeof(copy.dstPtr.pitch), false, nullptr);
                }
            }
            detail::forget_cuda_error(found, before);
        } else if (type == cudaGraphNodeTypeMemset) {
            cudaMemsetParams fill{};
            SLUICE_CUDA_CHECK(cudaGraphMemsetNodeGetParams(node, &fill));
            visit(&fill.dst, sizeof(fill.dst), true, nullptr);
            visit(&fill.value, sizeof(fill.value), false, nullptr);
            visit(&fill.elementSize, sizeof(fill.elementSize), false, nullptr);
            visit(&fill.width, sizeof(fill.width), false, nullptr);
            visit(&fill.height, sizeof(fill.height), false, nullptr);
            if (fill.height > 1)
                visit(&fill.pitch, sizeof(fill.pitch), false, nullptr);
        } else if (type == cudaGraphNodeTypeGraph) {
            cudaGraph_t child = nullptr;
            SLUICE_CUDA_CHECK(cudaGraphChildGraphNodeGetGraph(node, &child));
            visit_words(child, visit);
        }
    }
}

SLUICE_BODY detail::List<CudaGraphContents::InnerMemory>
CudaGraphContents::inner_memory_of(cudaGraph_t graph) {
    detail::List<InnerMemory> inner;
    for (const cudaGraphNode_t node : nodes_of(graph)) {
        const cudaGraphNodeType type = type_of(node);
        if (type == cudaGraphNodeTypeMemAlloc) {
            cudaMemAllocNodeParams block{};
            SLUICE_CUDA_CHECK(cudaGraphMemAllocNodeGetParams(node, &block));
            inner.push_back({reinterpret_cast<std::uintptr_t>(block.dptr), block.bytesize, false});
        } else if (type == cudaGraphNodeTypeMemFree) {
            void* memory = nullptr;
            SLUICE_CUDA_CHECK(cudaGraphMemFreeNodeGetParams(node, &memory));
            for (InnerMemory& block : inner)
                block.is_freed = block.is_freed || block.begin == reinterpret_cast<std::uintptr_t>(memory);
        }
    }
    return inner;
}

// The number of the block that `address` is in; as many as there are where it is in none, or in one that is not freed, whose owner
// knows the address.
SLUICE_BODY std::size_t CudaGraphContents::place_in(const detail::List<InnerMemory>& inner,
                                                    std::uintptr_t address) noexcept {
    std::size_t place = 0;
    while (place < inner.size() &&
           !(inner[place].is_freed && address - inner[place].begin < inner[place].bytes))
        ++place;
    return place;
}

SLUICE_BODY std::uint64_t CudaGraphContents::signature(cudaGraph_t graph,
                                                       const std::vector<const void*>& own) {
    std::uint64_t hash = 0xcbf29ce484222325U; // FNV-1a
    for (const Word& word : words_of(graph, own)) {
        for (const char byte : word.bytes)
            hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
    return hash;
}

SLUICE_BODY detail::List<CudaGraphContents::Word>
CudaGraphContents::words_of(cudaGraph_t graph, const std::vector<const void*>& own) {
    detail::List<Word> words;
    const detail::List<InnerMemory> inner = inner_memory_of(graph);
    visit_words(graph, [&](const void* memory, std::size_t bytes, bool is_argument, const void* kernel) {
        Word word{std::string(static_cast<const char*>(memory), bytes), kernel, 0};
        if (kernel != nullptr && !words.empty() && words.back().kernel == kernel)
            word.argument = words.back().argument + 1;
        const void* pointer = nullptr;
        if (bytes == sizeof(pointer))
            std::memcpy(&pointer, memory, sizeof(pointer));
        for (std::size_t place = 0; pointer != nullptr && place < own.size(); ++place) {
            if (own[place] == pointer) {
                word.bytes.assign(1, static_cast<char>(place));
                break;
            }
        }
        // An argument may be a structure with pointers among other things.
        for (std::size_t offset = 0;
             is_argument && !inner.empty() && offset + sizeof(pointer) <= word.bytes.size();
             offset += sizeof(pointer)) {
            std::uintptr_t address = 0;
            std::memcpy(&address, word.bytes.data() + offset, sizeof(address));
            const std::size_t place = place_in(inner, address);
            if (place == inner.size())
                continue;
            address = (std::uintptr_t{place} + 1) << 48 | (address - inner[place].begin);
            std::memcpy(word.bytes.data() + offset, &address, sizeof(address));
        }
        words.push_back(std::move(word));
    });
    return words;
}

SLUICE_BODY std::string CudaGraphContents::difference(cudaGraph_t a, const std::vector<const void*>& own_of_a,
                                                      cudaGraph_t b,
                                                      const std::vector<const void*>& own_of_b) {
    const detail::List<Word> words = words_of(a, own_of_a), others = words_of(b, own_of_b);
    for (std::size_t i = 0; i < words.size() && i < others.size(); ++i) {
        const Word &one = words[i], &other = others[i];
        if (one.bytes == other.bytes)
            continue;
        if (one.kernel == nullptr || one.kernel != other.kernel || one.bytes.size() != other.bytes.size())
            break;
        std::size_t first = 0, last = one.bytes.size() - 1;
        while (one.bytes[first] == other.bytes[first])
            ++first;
        while (one.bytes[last] == other.bytes[last])
            --last;
        const char* name = nullptr;
#if CUDART_VERSION >= 12030
        const cudaError_t before = cudaPeekAtLastError();
        detail::forget_cuda_error(cudaFuncGetName(&name, one.kernel), before);
#endif
        return "argument " + std::to_string(one.argument) + " of kernel " +
               (name != nullptr ? detail::demangled(name) : std::string("without a name")) + ", bytes " +
               std::to_string(first) + " to " + std::to_string(last) + " of " +
               std::to_string(one.bytes.size()) +
               (one.bytes.size() > sizeof(void*) ? " (padding counts as well)" : "");
    }
    return "the kind, the order or the shape of an operation";
}

SLUICE_BODY std::vector<const void*> CudaGraphContents::device_pointers(cudaGraph_t graph) {
    std::vector<const void*> pointers;
    const detail::List<InnerMemory> inner = inner_memory_of(graph);
    visit_words(graph, [&](const void* memory, std::size_t bytes, bool is_argument, const void*) {
        // An argument may be a structure with pointers among other things: try each word of it.
        for (std::size_t offset = 0; is_argument && offset + sizeof(void*) <= bytes;
             offset += sizeof(void*)) {
            const void* pointer = nullptr;
            std::memcpy(&pointer, static_cast<const char*>(memory) + offset, sizeof(pointer));
            if (pointer != nullptr &&
                place_in(inner, reinterpret_cast<std::uintptr_t>(pointer)) == inner.size() &&
                is_device_memory(pointer))
                pointers.push_back(pointer);
        }
    });
    return pointers;
}

} // namespace sluice

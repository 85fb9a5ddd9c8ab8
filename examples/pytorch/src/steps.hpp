/// \file
/// A plan's operations on streams and events, a moment at a time.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>

#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

namespace sluice_steps {

/// In place of an error of CUDA's: a batch's memory is still read; PyTorch refused.
constexpr int not_yet = -1, refused = -2;
enum Kind : std::int32_t { record, wait, current, restore };
constexpr std::int32_t caller = -1;

struct Operation {
    std::int32_t kind, event, stream;
};

struct Steps {
    int device = 0;
    std::vector<Operation> operations;
    std::vector<std::int32_t> first; // of each moment, and the end
    std::vector<cudaStream_t> streams;
    std::vector<cudaEvent_t> events;
    std::vector<cudaStream_t> recorded; // the stream on which each event was
    cudaStream_t callers = nullptr;
    CUDAStreamGuardHandle guard = nullptr; // while a stream of the pipeline is current

    ~Steps() {
        for (cudaEvent_t event : events)
            cudaEventDestroy(event);
    }

    int back() {
        if (guard == nullptr)
            return 0;
        const CUDAStreamGuardHandle held = guard;
        guard = nullptr;
        return aoti_torch_delete_cuda_stream_guard(held) == AOTI_TORCH_SUCCESS ? 0 : refused;
    }

    cudaStream_t stream_of(std::int32_t number) const {
        return number == caller ? callers : streams[static_cast<std::size_t>(number)];
    }

    /// One that is never destroyed, so that another stream cannot have its handle.
    static bool is_default(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }

    int carry_out(const Operation& operation) {
        const cudaEvent_t event = events[static_cast<std::size_t>(operation.event)];
        switch (operation.kind) {
        case record:
            recorded[static_cast<std::size_t>(operation.event)] = stream_of(operation.stream);
            return cudaEventRecord(event, stream_of(operation.stream));
        case wait:
            if (is_default(stream_of(operation.stream)) &&
                recorded[static_cast<std::size_t>(operation.event)] == stream_of(operation.stream))
                return 0; // it comes after that anyway
            return cudaStreamWaitEvent(stream_of(operation.stream), event, 0);
        case current:
            return torch_set_current_cuda_stream(stream_of(operation.stream), device) == AOTI_TORCH_SUCCESS
                       ? 0
                       : refused;
        default:
            return back();
        }
    }

    int run(int moment) {
        const auto place = static_cast<std::size_t>(moment);
        for (auto i = static_cast<std::size_t>(first[place]); i < static_cast<std::size_t>(first[place + 1]);
             ++i)
            if (const int error = carry_out(operations[i]))
                return error;
        return 0;
    }

    /// Makes `stream` and the device the current ones, until `back`.
    int make_current(cudaStream_t stream) {
        return aoti_torch_create_cuda_stream_guard(stream, device, &guard) == AOTI_TORCH_SUCCESS ? 0
                                                                                                 : refused;
    }

    int look_up_callers() {
        void* stream = nullptr;
        if (aoti_torch_get_current_cuda_stream(device, &stream) != AOTI_TORCH_SUCCESS)
            return refused;
        callers = static_cast<cudaStream_t>(stream);
        return 0;
    }

    /// Makes the device the current one: a default stream is that of the current device.
    int enter_device() {
        if (const int error = look_up_callers())
            return error;
        int now = -1;
        if (const int error = cudaGetDevice(&now))
            return error;
        return now == device ? 0 : make_current(callers);
    }

    /// For a batch.
    int enter() {
        const int error = look_up_callers();
        return error != 0 ? error : make_current(streams[0]);
    }

    int is_not_reached(int event) {
        const cudaError_t found = cudaEventQuery(events[static_cast<std::size_t>(event)]);
        if (found == cudaErrorNotReady) {
            cudaGetLastError(); // is no error, and would be the next kernel's
            return not_yet;
        }
        return found;
    }
};

} // namespace sluice_steps

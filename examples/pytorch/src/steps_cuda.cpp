/// \file
/// The waits of a pipeline's plan (python/sluice/pipelines/plan.py), a moment a call. Python loads these functions by ctypes, so nothing
/// here knows of Python. All return 0, or an error: of CUDA's, `not_yet`, or `refused` where PyTorch refused.
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <cuda_runtime_api.h>

namespace {

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

    int carry_out(const Operation& operation) {
        const cudaStream_t stream =
            operation.stream == caller ? callers : streams[static_cast<std::size_t>(operation.stream)];
        const cudaEvent_t event = events[static_cast<std::size_t>(operation.event)];
        switch (operation.kind) {
        case record:
            return cudaEventRecord(event, stream);
        case wait:
            return cudaStreamWaitEvent(stream, event, 0);
        case current:
            return torch_set_current_cuda_stream(stream, device) == AOTI_TORCH_SUCCESS ? 0 : refused;
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

    /// Makes the device and the copies' stream the current ones, until `back`. A default stream is that of the current device.
    int enter() {
        void* stream = nullptr;
        if (aoti_torch_get_current_cuda_stream(device, &stream) != AOTI_TORCH_SUCCESS)
            return refused;
        callers = static_cast<cudaStream_t>(stream);
        return aoti_torch_create_cuda_stream_guard(streams[0], device, &guard) == AOTI_TORCH_SUCCESS
                   ? 0
                   : refused;
    }
};

} // namespace

#define SLUICE_STEPS extern "C" __attribute__((visibility("default")))

/// `operations` has three numbers for each, `first` one for each moment and the number of all. Null if there is an error.
SLUICE_STEPS void* sluice_steps_make(int device, const std::int32_t* operations, const std::int32_t* first,
                                     int moments, void* const* streams, int stream_count, int event_count) {
    auto steps = std::make_unique<Steps>();
    steps->device = device;
    steps->first.assign(first, first + moments + 1);
    for (std::int32_t i = 0; i < first[moments]; ++i)
        steps->operations.push_back({operations[3 * i], operations[3 * i + 1], operations[3 * i + 2]});
    for (int i = 0; i < stream_count; ++i)
        steps->streams.push_back(static_cast<cudaStream_t>(streams[i]));
    for (int i = 0; i < event_count; ++i) {
        cudaEvent_t event = nullptr;
        if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess)
            return nullptr;
        steps->events.push_back(event);
    }
    return steps.release();
}

SLUICE_STEPS void sluice_steps_free(void* steps) { delete static_cast<Steps*>(steps); }

/// Begins a batch, if `copied` has been reached, and otherwise does nothing and returns `not_yet`.
SLUICE_STEPS int sluice_steps_begin(void* handle, int moment, int copied) {
    Steps& steps = *static_cast<Steps*>(handle);
    const cudaError_t done = cudaEventQuery(steps.events[static_cast<std::size_t>(copied)]);
    if (done == cudaErrorNotReady) {
        cudaGetLastError(); // is no error, and would be the next kernel's
        return not_yet;
    }
    if (done != cudaSuccess)
        return done;
    if (const int error = steps.enter())
        return error;
    return steps.run(moment);
}

SLUICE_STEPS int sluice_steps_run(void* handle, int moment) {
    return static_cast<Steps*>(handle)->run(moment);
}

/// A moment outside of a batch, on the stream that is the caller's now.
SLUICE_STEPS int sluice_steps_read(void* handle, int moment) {
    Steps& steps = *static_cast<Steps*>(handle);
    if (const int error = steps.enter())
        return error;
    const int error = steps.run(moment);
    const int left = steps.back();
    return error != 0 ? error : left;
}

SLUICE_STEPS int sluice_steps_restore(void* handle) { return static_cast<Steps*>(handle)->back(); }

/// 1 or 0; after an error, which another call tells, 1.
SLUICE_STEPS int sluice_steps_is_reached(void* handle, int event) {
    if (cudaEventQuery(static_cast<Steps*>(handle)->events[static_cast<std::size_t>(event)]) !=
        cudaErrorNotReady)
        return 1;
    cudaGetLastError();
    return 0;
}

/// Waits on the calling thread.
SLUICE_STEPS int sluice_steps_wait(void* handle, int event) {
    return cudaEventSynchronize(static_cast<Steps*>(handle)->events[static_cast<std::size_t>(event)]);
}

SLUICE_STEPS const char* sluice_steps_message(int error) {
    return error == refused ? "PyTorch has no such stream"
                            : cudaGetErrorString(static_cast<cudaError_t>(error));
}

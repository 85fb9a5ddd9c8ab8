/// \file
/// The waits of a pipeline's plan (python/sluice/pipelines/plan.py), a moment a call. Python loads these functions by ctypes. All
/// return 0, or an error: of CUDA's, or one of steps.hpp's. `sluice_steps_functions` gives those that do a whole batch: functions.hpp.
#include <memory>

#include "functions.hpp"
#include "steps.hpp"

using sluice_steps::Steps;

#define SLUICE_STEPS extern "C" __attribute__((visibility("default")))

/// `operations` has three numbers for each, `first` one for each moment and the number of all. Null if there is an error.
SLUICE_STEPS void* sluice_steps_make(int device, const std::int32_t* operations, const std::int32_t* first,
                                     int moments, void* const* streams, int stream_count, int event_count) {
    auto steps = std::make_unique<Steps>();
    steps->device = device;
    steps->first.assign(first, first + moments + 1);
    for (std::int32_t i = 0; i < first[moments]; ++i) {
        steps->operations.push_back({operations[3 * i], operations[3 * i + 1], operations[3 * i + 2]});
    }
    for (int i = 0; i < stream_count; ++i)
        steps->streams.push_back(static_cast<cudaStream_t>(streams[i]));
    for (int i = 0; i < event_count; ++i) {
        cudaEvent_t event = nullptr;
        if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess)
            return nullptr;
        steps->add(event);
    }
    return steps.release();
}

SLUICE_STEPS void sluice_steps_free(void* steps) { delete static_cast<Steps*>(steps); }

/// Begins a batch, if `copied` has been reached, and otherwise does nothing.
SLUICE_STEPS int sluice_steps_begin(void* handle, int moment, int copied) {
    Steps& steps = *static_cast<Steps*>(handle);
    if (const int error = steps.is_not_over(copied))
        return error;
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
    if (const int error = steps.enter_device())
        return error;
    const int error = steps.run(moment);
    const int left = steps.back();
    return error != 0 ? error : left;
}

SLUICE_STEPS int sluice_steps_restore(void* handle) { return static_cast<Steps*>(handle)->back(); }

/// 1 or 0; after an error, which another call tells, 1.
SLUICE_STEPS int sluice_steps_is_reached(void* handle, int event) {
    return static_cast<Steps*>(handle)->is_not_reached(event) == sluice_steps::not_yet ? 0 : 1;
}

/// Waits on the calling thread.
SLUICE_STEPS int sluice_steps_wait(void* handle, int event) {
    return cudaEventSynchronize(static_cast<Steps*>(handle)->events[static_cast<std::size_t>(event)]);
}

SLUICE_STEPS const char* sluice_steps_message(int error) {
    return error == sluice_steps::refused ? "PyTorch has no such stream"
                                          : cudaGetErrorString(static_cast<cudaError_t>(error));
}

/// The functions of functions.hpp, as objects of Python's; null if one cannot be made. `words` is a tuple of what they use.
SLUICE_STEPS PyObject* sluice_steps_functions(PyObject* words) { return sluice_flow::functions(words); }

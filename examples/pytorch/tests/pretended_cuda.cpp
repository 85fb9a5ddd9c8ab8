// What src/steps_cuda.cpp calls of CUDA and PyTorch, pretended: each call is noted. Streams and events are numbers.
#include "../src/steps_cuda.cpp"

#include <cstring>
#include <map>
#include <string>

namespace {
std::string notes;
std::intptr_t events = 0, current_stream = 90;
int current_device = 0, not_ready = 0, looks = 0;
std::map<cudaEvent_t, int> recorded; // which record of all, from 1 on, is an event's last
int records = 0, reached = -1;       // the device is past as many; -1: past all, or past none by `not_ready`
struct Guard {
    std::intptr_t stream;
    int device;
};
void note(const char* what, const void* first, std::intptr_t second) {
    notes += std::string(what) + " " + std::to_string(reinterpret_cast<std::intptr_t>(first)) + " " +
             std::to_string(second) + "\n";
}
} // namespace

extern "C" {
__attribute__((visibility("default"))) const char* pretended_notes() { return notes.c_str(); }
__attribute__((visibility("default"))) void pretended_clear(int waits) {
    notes.clear();
    not_ready = waits;
}
__attribute__((visibility("default"))) int pretended_records() { return records; }
__attribute__((visibility("default"))) int pretended_events() { return static_cast<int>(events); }
__attribute__((visibility("default"))) int pretended_recorded(int event) {
    return recorded[reinterpret_cast<cudaEvent_t>(static_cast<std::intptr_t>(event))];
}
__attribute__((visibility("default"))) int pretended_looks() { return looks; }
__attribute__((visibility("default"))) int pretended_reached() { return reached; }
__attribute__((visibility("default"))) void pretended_reach(int many) { reached = many; }
__attribute__((visibility("default"))) void pretended_stream(int number, int device) {
    current_stream = number;
    current_device = device;
}
__attribute__((visibility("default"))) int pretended_state() {
    return static_cast<int>(current_stream * 10 + current_device);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    *event = reinterpret_cast<cudaEvent_t>(++events);
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    note("record", event, reinterpret_cast<std::intptr_t>(stream));
    recorded[event] = ++records;
    return current_device == 1 ? cudaSuccess
                               : cudaErrorInvalidResourceHandle; // a default stream would be another device's
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    note("wait", event, reinterpret_cast<std::intptr_t>(stream));
    return current_device == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
    ++looks;
    const bool waits = reached < 0 ? not_ready > 0 : recorded[event] > reached;
    return waits ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    note("host", event, 0);
    not_ready = 0;
    if (reached >= 0 && recorded[event] > reached)
        reached = recorded[event];
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
    note("copy", nullptr, reinterpret_cast<std::intptr_t>(stream));
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
    *device = current_device;
    return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "pretended"; }

AOTITorchError aoti_torch_get_current_cuda_stream(int32_t, void** stream) {
    *stream = reinterpret_cast<void*>(current_stream);
    return AOTI_TORCH_SUCCESS;
}
AOTITorchError aoti_torch_create_cuda_stream_guard(void* stream, int32_t device,
                                                   CUDAStreamGuardHandle* guard) {
    *guard = reinterpret_cast<CUDAStreamGuardHandle>(new Guard{current_stream, current_device});
    current_stream = reinterpret_cast<std::intptr_t>(stream);
    current_device = device;
    return AOTI_TORCH_SUCCESS;
}
AOTITorchError aoti_torch_delete_cuda_stream_guard(CUDAStreamGuardHandle guard) {
    auto* held = reinterpret_cast<Guard*>(guard);
    current_stream = held->stream;
    current_device = held->device;
    delete held;
    note("back", nullptr, current_stream);
    return AOTI_TORCH_SUCCESS;
}
AOTITorchError torch_set_current_cuda_stream(void* stream, int32_t device) {
    current_stream = reinterpret_cast<std::intptr_t>(stream);
    note("current", stream, device);
    return AOTI_TORCH_SUCCESS;
}
}

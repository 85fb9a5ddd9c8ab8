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
    std::vector<std::uint64_t> order;   // of its last record among all records, from 1 on
    std::uint64_t records = 0;
    std::vector<int> next;         // the event that was asked about after each one, or -1
    int asked = -1;                // the last one
    cudaStream_t passed = nullptr; // this stream is past its records up to `passed_order`
    std::uint64_t passed_order = 0;
    int looks_at_one = 0; // so many before the next look at a later event
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
            order[static_cast<std::size_t>(operation.event)] = ++records;
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

    void add(cudaEvent_t event) {
        events.push_back(event);
        recorded.push_back(cudaStreamPerThread); // which no other thread can wait on by chance
        order.push_back(0);
        next.push_back(-1);
    }

    /// As `is_not_reached`, for the event that bounds how far the host is ahead: one for each batch. A look costs more than all else
    /// that is done with a batch's events, so it is at the event of the next batch, if that pays: past it, a stream is past this one.
    int is_not_over(int event) {
        const auto place = static_cast<std::size_t>(event);
        if (asked >= 0 && asked != event) // and not again after a wait
            next[static_cast<std::size_t>(asked)] = event;
        asked = event;
        if (recorded[place] == passed && order[place] <= passed_order)
            return 0;
        const auto later = static_cast<std::size_t>(next[place] < 0 ? event : next[place]);
        if (looks_at_one > 0) {
            --looks_at_one;
        } else if (recorded[later] == recorded[place] && order[later] > order[place]) {
            const int found = is_not_reached(static_cast<int>(later));
            if (found == 0) {
                passed = recorded[place];
                passed_order = order[later];
            }
            if (found != not_yet)
                return found;
            looks_at_one = 15;
        }
        return is_not_reached(event);
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

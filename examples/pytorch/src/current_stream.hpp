/// \file
/// The stream that work on a tensor belongs to.
#pragma once

#include <sluice/backend/stream.hpp>

#include "tensors.hpp"

namespace sluice_torch {

/// Makes a tensor's device current, and names PyTorch's current stream of that device: what `torch.cuda.stream` set, or a
/// capture. The device that was current is so again afterwards.
class OnDeviceOf {
public:
    explicit OnDeviceOf(const Tensor& tensor)
        : guard_(tensor.get_device_index()), stream_(current(tensor.get_device_index())) {}

    sluice::CudaStreamRef stream() const { return stream_; }

private:
    static cudaStream_t current(std::int32_t device) {
        void* stream = nullptr;
        TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &stream));
        return static_cast<cudaStream_t>(stream);
    }

    torch::stable::accelerator::DeviceGuard guard_;
    sluice::CudaStreamRef stream_;
};

} // namespace sluice_torch

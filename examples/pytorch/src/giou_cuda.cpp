// The GIoU loss's operators on CUDA tensors.
#include "current_stream.hpp"
#include "giou_kernels.hpp"
#include "giou_ops.hpp"

namespace sluice_torch {
namespace {

struct Gpu {
    static constexpr bool on_cpu = false;

    static void forward(const Tensor& like, bool torchvision, const GiouForward& all) {
        const OnDeviceOf device(like);
        launch_giou(device.stream(), torchvision, all);
    }
    static void both(const Tensor& like, bool torchvision, const GiouBoth& all) {
        const OnDeviceOf device(like);
        launch_giou_both(device.stream(), torchvision, all);
    }
    static void backward(const Tensor& like, const GiouBackward& all) {
        const OnDeviceOf device(like);
        launch_giou_backward(device.stream(), all);
    }
};

} // namespace

STABLE_TORCH_LIBRARY_IMPL(sluice, CUDA, library) { register_giou<Gpu>(library); }

} // namespace sluice_torch

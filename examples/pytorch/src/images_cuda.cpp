// Augmentation of CUDA tensors, by the kernel of examples/augment.
#include "current_stream.hpp"
#include "images_kernels.hpp"
#include "images_ops.hpp"

namespace sluice_torch {
namespace {

struct Gpu {
    static augment::ParameterSource<sluice::Cuda> source(const ImageChain& chain, const Tensor& ids) {
        return {chain.ranges, chain.seed,
                sluice::DeviceSpan<const augment::SampleId, sluice::Cuda>(
                    static_cast<const augment::SampleId*>(ids.const_data_ptr()),
                    static_cast<std::size_t>(ids.size(0)))};
    }

    template <class Out>
    static void augment(const Tensor& images, const ImageChain& chain, augment::ImageShape shape,
                        augment::Layout layout, const Tensor& ids, Out* out) {
        using sluice::Cuda;
        using sluice::DeviceSpan;
        const OnDeviceOf device(images);
        const auto published = augment::published_chain(chain.options);
        const augment::ImageShape result = published.output_shape(shape);
        const auto count = static_cast<std::size_t>(images.size(0));
        const auto numbers = [count](augment::ImageShape of) {
            return count * static_cast<std::size_t>(of.channels) * static_cast<std::size_t>(of.height) *
                   static_cast<std::size_t>(of.width);
        };
        apply(device.stream(), published,
              augment::Images<const std::uint8_t, Cuda>(
                  DeviceSpan<const std::uint8_t, Cuda>(
                      static_cast<const std::uint8_t*>(images.const_data_ptr()), numbers(shape)),
                  shape, layout),
              source(chain, ids),
              augment::Images<Out, Cuda>(DeviceSpan<Out, Cuda>(out, numbers(result)), result, layout));
    }

    static void parameters(const Tensor& like, const ImageChain& chain, const Tensor& ids, float* table,
                           int count) {
        const OnDeviceOf device(like);
        launch_parameters(device.stream(), source(chain, ids), table, count);
    }
};

} // namespace

STABLE_TORCH_LIBRARY_IMPL(sluice, CUDA, library) { register_images<Gpu>(library); }

} // namespace sluice_torch

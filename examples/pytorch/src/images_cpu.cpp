// Augmentation on the CPU: threads share the images.
#include "images_ops.hpp"

namespace sluice_torch {
namespace {

struct Cpu {
    /// The ids of images `begin` and on.
    static std::vector<augment::SampleId> ids_from(const Tensor& ids, std::int64_t begin, std::int64_t end) {
        const auto* const given = static_cast<const augment::SampleId*>(ids.const_data_ptr());
        std::vector<augment::SampleId> result;
        for (std::int64_t i = begin; i < end; ++i) {
            result.push_back(given[ids.size(0) == 1 ? 0 : i]);
            if (ids.size(0) == 1)
                result.back().sample += static_cast<std::uint64_t>(i);
        }
        return result;
    }

    template <class Out>
    static void augment(const Tensor& images, const ImageChain& chain, augment::ImageShape shape,
                        augment::Layout layout, const Tensor& ids, Out* out) {
        using sluice::DeviceSpan;
        using sluice::Host;
        const auto published = augment::published_chain(chain.options);
        const augment::ImageShape result = published.output_shape(shape);
        const auto size = [](augment::ImageShape of) {
            return static_cast<std::size_t>(of.channels) * static_cast<std::size_t>(of.height) *
                   static_cast<std::size_t>(of.width);
        };
        const auto* const in = static_cast<const std::uint8_t*>(images.const_data_ptr());
        const auto some = [&](std::int64_t begin, std::int64_t end) {
            const std::vector<augment::SampleId> own = ids_from(ids, begin, end);
            const auto first = static_cast<std::size_t>(begin);
            const sluice::BasicStream<Host> stream = sluice::BasicStream<Host>::make_inline();
            apply(
                stream.ref(), published,
                augment::Images<const std::uint8_t, Host>(
                    DeviceSpan<const std::uint8_t, Host>(in + first * size(shape), own.size() * size(shape)),
                    shape, layout),
                augment::ParameterSource<Host>(
                    chain.ranges, chain.seed,
                    DeviceSpan<const augment::SampleId, Host>(own.data(), own.size())),
                augment::Images<Out, Host>(
                    DeviceSpan<Out, Host>(out + first * size(result), own.size() * size(result)), result,
                    layout));
            stream.sync();
        };
        torch::stable::parallel_for(0, images.size(0), 1, some);
    }

    static void parameters(const Tensor&, const ImageChain& chain, const Tensor& ids, float* table,
                           int count) {
        const std::vector<augment::SampleId> own = ids_from(ids, 0, count);
        for (std::size_t i = 0; i < own.size(); ++i)
            put_parameters(table + 4 * i, augment::draw(chain.ranges, chain.seed, own[i]));
    }
};

} // namespace

STABLE_TORCH_LIBRARY_IMPL(sluice, CPU, library) { register_images<Cpu>(library); }

} // namespace sluice_torch

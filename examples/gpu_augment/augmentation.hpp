/// \file
/// Augmentation of whole batches, on a stream or on a worker's own thread.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <variant>

#include <gpu_augment/chains.hpp>
#include <sluice/sluice.hpp>

// chains.cpp and chains_cuda.cu instantiate `apply` for the chains for digits.
namespace augment {

extern template void apply(sluice::HostStreamRef, const gpu_augment::DigitChain&,
                           Images<const std::uint8_t, sluice::Host>, ParameterSource<sluice::Host>,
                           Images<float, sluice::Host>);
extern template void apply(sluice::HostStreamRef, const gpu_augment::PlainDigitChain&,
                           Images<const std::uint8_t, sluice::Host>, ParameterSource<sluice::Host>,
                           Images<float, sluice::Host>);
extern template void apply(const gpu_augment::DigitChain&, Images<const std::uint8_t, sluice::Host>,
                           ParameterSource<sluice::Host>, Images<float, sluice::Host>);
extern template void apply(const gpu_augment::PlainDigitChain&, Images<const std::uint8_t, sluice::Host>,
                           ParameterSource<sluice::Host>, Images<float, sluice::Host>);

} // namespace augment

namespace gpu_augment {

/// A chain for batches of images of three planes, with parameters that are drawn anew for each sample of each epoch.
class BatchAugmentation {
public:
    /// Throws `sluice::Error` for images that are too small for the chain.
    BatchAugmentation(ChainName name, std::size_t height, std::size_t width, std::uint64_t seed)
        : chosen_(choose_chain(name, height, width)), shape_{3, static_cast<int>(height),
                                                             static_cast<int>(width)},
          seed_(seed) {}

    /// Enqueues the augmentation of `images`. Nothing but memory is read when the stream gets there, so a replay of it
    /// augments the images and samples that are there then.
    template <sluice::Backend B>
    void run(sluice::BasicStreamRef<B> stream,
             std::type_identity_t<sluice::DeviceSpan<const std::uint8_t, B>> images,
             std::type_identity_t<sluice::DeviceSpan<const augment::SampleId, B>> samples,
             std::type_identity_t<sluice::DeviceSpan<float, B>> out) const {
        const augment::Images<const std::uint8_t, B> in(images, shape_);
        const augment::ParameterSource<B> parameters(chosen_.ranges, seed_, samples);
        const augment::Images<float, B> result(out, shape_);
        std::visit([&](const auto& chain) { augment::apply(stream, chain, in, parameters, result); },
                   chosen_.chain);
    }

    /// Augments on the calling thread: the same pixels as on a stream of the Host backend.
    void run_here(std::span<const std::uint8_t> images, std::span<const augment::SampleId> samples,
                  std::span<float> out) const {
        using sluice::DeviceSpan;
        using sluice::Host;
        const augment::Images<const std::uint8_t, Host> in(
            DeviceSpan<const std::uint8_t, Host>(images.data(), images.size()), shape_);
        const augment::ParameterSource<Host> parameters(
            chosen_.ranges, seed_, DeviceSpan<const augment::SampleId, Host>(samples.data(), samples.size()));
        const augment::Images<float, Host> result(DeviceSpan<float, Host>(out.data(), out.size()), shape_);
        std::visit([&](const auto& chain) { augment::apply(chain, in, parameters, result); }, chosen_.chain);
    }

private:
    ChosenChain chosen_;
    augment::ImageShape shape_;
    std::uint64_t seed_;
};

} // namespace gpu_augment

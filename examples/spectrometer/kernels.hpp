/// \file
/// The kernels between the transforms, one definition for both backends.
#pragma once

#include <cstddef>

#include <sluice/sluice.hpp>
#include <spectrometer/options.hpp>

namespace spectrometer {

/// As cuFFT and `std::complex` lay it out.
struct Complex {
    float real;
    float imaginary;
};

/// Cuts `transforms` pieces of twice `hop` samples each out of a block of `transforms * hop` samples and the end of the block
/// before, the first one `hop` samples before the block, and weights them. `before` is null where there is none: the first piece
/// is zeros then.
/// \param window 2 * hop weights
/// \param out    transforms * 2 * hop
template <sluice::Backend B>
void cut_and_weight(sluice::BasicStreamRef<B> stream, const std::byte* before, const std::byte* block,
                    Format format, const float* window, std::size_t hop, std::size_t transforms,
                    Complex* out);

/// power[i] += the squares of the i-th lowest frequency in each of `transforms` transforms of `fft` values, 0 being in the
/// middle; `first`: = instead of +=.
template <sluice::Backend B>
void add_power(sluice::BasicStreamRef<B> stream, const Complex* values, std::size_t fft,
               std::size_t transforms, float* power, bool first);

} // namespace spectrometer

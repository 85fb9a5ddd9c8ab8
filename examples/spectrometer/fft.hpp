/// \file
/// Fourier transforms: KISS FFT on the CPU, cuFFT on a GPU.
#pragma once

#include <cstddef>
#include <memory>

#include <sluice/sluice.hpp>
#include <spectrometer/kernels.hpp>

namespace spectrometer {

/// A plan for `transforms` transforms of `size` values each. It has one work area, so one stage uses it, on one stream.
template <sluice::Backend B>
class Fft {
public:
    /// \throws sluice::Error where the library cannot make it
    Fft(std::size_t size, std::size_t transforms);
    ~Fft();
    Fft(const Fft&) = delete;
    Fft& operator=(const Fft&) = delete;

    /// Transforms all of `values` in place, forward, not scaled, in the order of `stream`. Can be captured.
    void forward(sluice::BasicStreamRef<B> stream, Complex* values);

private:
    struct Plan;
    std::unique_ptr<Plan> plan_;
};

} // namespace spectrometer

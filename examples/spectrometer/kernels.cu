// Compiled by nvcc for both backends, or as C++ for the CPU alone.
#include <spectrometer/kernels.hpp>

#include <cstdint>

#include <quickstart/for_each.hpp>

namespace spectrometer {
namespace {

SLUICE_HOST_DEVICE Complex sample_at(const std::byte* samples, Format format, std::size_t i) {
    if (format == Format::int8) {
        const auto* parts = reinterpret_cast<const std::int8_t*>(samples) + 2 * i;
        return {static_cast<float>(parts[0]) / 128, static_cast<float>(parts[1]) / 128};
    }
    return reinterpret_cast<const Complex*>(samples)[i];
}

SLUICE_HOST_DEVICE void cut_one(std::size_t i, const std::byte* before, const std::byte* block, Format format,
                                const float* window, std::size_t hop, std::size_t transforms, Complex* out) {
    const std::size_t piece = i / (2 * hop);
    const std::size_t in_piece = i % (2 * hop);
    Complex sample{0, 0};
    if (piece > 0 || (in_piece >= hop && before != nullptr))
        sample = sample_at(block, format, piece * hop + in_piece - hop);
    else if (before != nullptr)
        sample = sample_at(before, format, (transforms - 1) * hop + in_piece);
    out[i] = {window[in_piece] * sample.real, window[in_piece] * sample.imaginary};
}

SLUICE_HOST_DEVICE void add_one(std::size_t i, const Complex* values, std::size_t fft, std::size_t transforms,
                                float* power, bool first) {
    const std::size_t bin = (i + fft / 2) % fft;
    float sum = first ? 0 : power[i];
    for (std::size_t transform = 0; transform < transforms; ++transform) {
        const Complex value = values[transform * fft + bin];
        sum += value.real * value.real + value.imaginary * value.imaginary;
    }
    power[i] = sum;
}

} // namespace

template <sluice::Backend B>
void cut_and_weight(sluice::BasicStreamRef<B> stream, const std::byte* before, const std::byte* block,
                    Format format, const float* window, std::size_t hop, std::size_t transforms,
                    Complex* out) {
    for_each<cut_one>(stream, transforms * 2 * hop, before, block, format, window, hop, transforms, out);
}

template <sluice::Backend B>
void add_power(sluice::BasicStreamRef<B> stream, const Complex* values, std::size_t fft,
               std::size_t transforms, float* power, bool first) {
    for_each<add_one>(stream, fft, values, fft, transforms, power, first);
}

template void cut_and_weight(sluice::HostStreamRef, const std::byte*, const std::byte*, Format, const float*,
                             std::size_t, std::size_t, Complex*);
template void add_power(sluice::HostStreamRef, const Complex*, std::size_t, std::size_t, float*, bool);
#if SLUICE_HAS_CUDA
template void cut_and_weight(sluice::CudaStreamRef, const std::byte*, const std::byte*, Format, const float*,
                             std::size_t, std::size_t, Complex*);
template void add_power(sluice::CudaStreamRef, const Complex*, std::size_t, std::size_t, float*, bool);
#endif

} // namespace spectrometer

#include <spectrometer/fft.hpp>

#include <string>

#include <cufft.h>

namespace spectrometer {
namespace {

void check(cufftResult result, const char* call) {
    if (result != CUFFT_SUCCESS)
        throw sluice::Error(std::string(call) + ": cuFFT's error " + std::to_string(result));
}

} // namespace

template <>
struct Fft<sluice::Cuda>::Plan {
    cufftHandle handle = 0;
    ~Plan() { cufftDestroy(handle); }
};

template <>
Fft<sluice::Cuda>::Fft(std::size_t size, std::size_t transforms) {
    cufftHandle handle = 0;
    check(cufftPlan1d(&handle, static_cast<int>(size), CUFFT_C2C, static_cast<int>(transforms)),
          "cufftPlan1d");
    plan_.reset(new Plan{handle});
}
template <>
Fft<sluice::Cuda>::~Fft() = default;

template <>
void Fft<sluice::Cuda>::forward(sluice::CudaStreamRef stream, Complex* values) {
    auto* const all = reinterpret_cast<cufftComplex*>(values);
    check(cufftSetStream(plan_->handle, stream), "cufftSetStream");
    check(cufftExecC2C(plan_->handle, all, all, CUFFT_FORWARD), "cufftExecC2C");
}

template class Fft<sluice::Cuda>;

} // namespace spectrometer

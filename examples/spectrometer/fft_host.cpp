#include <spectrometer/fft.hpp>

#include <algorithm>
#include <complex>
#include <vector>

#include <kissfft.hh>

namespace spectrometer {

template <>
struct Fft<sluice::Host>::Plan {
    kissfft<float> fft;
    std::size_t transforms;
    std::vector<std::complex<float>> input; // of one transform: it is not done in place
};

template <>
Fft<sluice::Host>::Fft(std::size_t size, std::size_t transforms)
    : plan_(new Plan{{size, false}, transforms, std::vector<std::complex<float>>(size)}) {}
template <>
Fft<sluice::Host>::~Fft() = default;

template <>
void Fft<sluice::Host>::forward(sluice::HostStreamRef stream, Complex* values) {
    stream.enqueue([&plan = *plan_, all = reinterpret_cast<std::complex<float>*>(values)] {
        for (std::size_t i = 0; i < plan.transforms; ++i) {
            std::complex<float>* const one = all + i * plan.input.size();
            std::copy(one, one + plan.input.size(), plan.input.begin());
            plan.fft.transform(plan.input.data(), one);
        }
    });
}

template class Fft<sluice::Host>;

} // namespace spectrometer

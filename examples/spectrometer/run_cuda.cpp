#include <spectrometer/run.hpp>

template examples::Report spectrometer::run<sluice::Cuda>(const Options&, std::ostream&);

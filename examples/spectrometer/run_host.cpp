#include <spectrometer/run.hpp>

template examples::Report spectrometer::run<sluice::Host>(const Options&, std::ostream&);

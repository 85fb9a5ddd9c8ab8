#include <live/run.hpp>

template examples::Report live::run<sluice::Cuda>(const Options&, std::ostream&);

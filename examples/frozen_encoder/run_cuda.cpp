#include <frozen_encoder/run.hpp>

template examples::Report frozen_encoder::run<sluice::Cuda>(const Options&, std::ostream&);

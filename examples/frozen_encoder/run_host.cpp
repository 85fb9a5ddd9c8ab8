#include <frozen_encoder/run.hpp>

template examples::Report frozen_encoder::run<sluice::Host>(const Options&, std::ostream&);

#include <frozen_encoder/run_data_parallel.hpp>

template examples::Report frozen_encoder::run<sluice::Cuda>(const Options&, std::ostream&);

#include <frozen_encoder/run_data_parallel.hpp>

template examples::Report frozen_encoder::run<sluice::Host>(const Options&, std::ostream&);

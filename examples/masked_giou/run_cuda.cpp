#include <masked_giou/run.hpp>

template examples::Report masked_giou::run<sluice::Cuda>(const Options&, std::ostream&);

#include <frozen_encoder/run.inl>

template examples::Report frozen_encoder::run<sluice::Cuda>(const Options&, std::ostream&);

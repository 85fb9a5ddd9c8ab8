#include <frozen_encoder/run.inl>

template examples::Report frozen_encoder::run<sluice::Host>(const Options&, std::ostream&);

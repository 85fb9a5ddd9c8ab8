#include <masked_giou/run.inl>

template examples::Report masked_giou::run<sluice::Cuda>(const Options&, std::ostream&);

#include <masked_giou/run.inl>

template examples::Report masked_giou::run<sluice::Host>(const Options&, std::ostream&);

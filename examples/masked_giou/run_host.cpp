#include <masked_giou/run.hpp>

template examples::Report masked_giou::run<sluice::Host>(const Options&, std::ostream&);

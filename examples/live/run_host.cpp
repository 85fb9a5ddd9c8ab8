#include <live/run.hpp>

template examples::Report live::run<sluice::Host>(const Options&, std::ostream&);

#include <resnet18/run.hpp>

template examples::Report resnet18::run<sluice::Host>(const Options&, std::ostream&);

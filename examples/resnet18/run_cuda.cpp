#include <resnet18/run.hpp>

template examples::Report resnet18::run<sluice::Cuda>(const Options&, std::ostream&);

#include <gpu_augment/run.hpp>

template examples::Report gpu_augment::run<sluice::Cuda>(const Options&, std::ostream&);

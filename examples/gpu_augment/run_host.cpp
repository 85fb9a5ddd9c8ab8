#include <gpu_augment/run.hpp>

template examples::Report gpu_augment::run<sluice::Host>(const Options&, std::ostream&);

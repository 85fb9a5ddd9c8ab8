#include <gpu_augment/run.inl>

template examples::Report gpu_augment::run<sluice::Host>(const Options&, std::ostream&);

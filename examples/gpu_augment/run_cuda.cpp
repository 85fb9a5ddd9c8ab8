#include <gpu_augment/run.inl>

template examples::Report gpu_augment::run<sluice::Cuda>(const Options&, std::ostream&);

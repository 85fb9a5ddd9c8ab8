#include <graph_replay/run.inl>

template examples::Report graph_replay::run<sluice::Cuda>(const Options&, std::ostream&);

#include <graph_replay/run.hpp>

template examples::Report graph_replay::run<sluice::Cuda>(const Options&, std::ostream&);

#include <graph_replay/run.hpp>

template examples::Report graph_replay::run<sluice::Host>(const Options&, std::ostream&);

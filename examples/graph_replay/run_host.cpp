#include <graph_replay/run.inl>

template examples::Report graph_replay::run<sluice::Host>(const Options&, std::ostream&);

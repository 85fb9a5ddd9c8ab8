/// \file
/// Experiment: steps launched one by one and as a graph.

#include <ostream>

#include <common/program.hpp>
#include <graph_replay/options.hpp>
#include <graph_replay/run.hpp>

int main(int argc, char** argv) {
    return examples::run_program(
        argc, argv, graph_replay::parse,
        []<sluice::Backend B>(const graph_replay::Options& options, std::ostream& out) {
            return graph_replay::run<B>(options, out);
        });
}

/// \file
/// Experiment: steps launched one by one and as a graph.

#include <iostream>

#include <common/cuda_probe.hpp>
#include <common/options.hpp>
#include <common/report.hpp>
#include <graph_replay/options.hpp>
#include <graph_replay/run.hpp>
#include <sluice/backend/default.hpp>

namespace {

examples::Report run_on(examples::BackendKind backend, const graph_replay::Options& options) {
#if SLUICE_HAS_CUDA
    if (backend == examples::BackendKind::cuda)
        return graph_replay::run<sluice::Cuda>(options, std::cout);
#endif
    static_cast<void>(backend); // CUDA is chosen only where it is there.
    return graph_replay::run<sluice::Host>(options, std::cout);
}

} // namespace

int main(int argc, char** argv) {
    return examples::run_main(argc, argv, [&] {
        graph_replay::Options options;
        if (const auto code = graph_replay::parse(argc, argv, options))
            return *code;
        const auto backend = examples::choose_backend(options.backend, examples::probe_cuda());
        const examples::Report report = run_on(backend, options);
        if (!options.json.empty())
            examples::write_json(report, options.json);
        return 0;
    });
}

/// \file
/// Experiment: a loss over ragged boxes, with and without padding, and a detector that learns by it.

#include <iostream>

#include <common/cuda_probe.hpp>
#include <common/options.hpp>
#include <common/report.hpp>
#include <masked_giou/options.hpp>
#include <masked_giou/run.hpp>
#include <sluice/backend/default.hpp>
#include <sluice/pipeline/nvtx.hpp> // stages show by name in Nsight Systems

namespace {

examples::Report run_on(examples::BackendKind backend, const masked_giou::Options& options) {
#if SLUICE_HAS_CUDA
    if (backend == examples::BackendKind::cuda)
        return masked_giou::run<sluice::Cuda>(options, std::cout);
#endif
    static_cast<void>(backend); // CUDA is chosen only where it is there.
    return masked_giou::run<sluice::Host>(options, std::cout);
}

} // namespace

int main(int argc, char** argv) {
    return examples::run_main(argc, argv, [&] {
        masked_giou::Options options;
        if (const auto code = masked_giou::parse(argc, argv, options))
            return *code;
        const auto backend = examples::choose_backend(options.backend, examples::probe_cuda());
        const examples::Report report = run_on(backend, options);
        if (!options.json.empty())
            examples::write_json(report, options.json);
        return 0;
    });
}

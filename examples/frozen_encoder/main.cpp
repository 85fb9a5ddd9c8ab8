/// \file
/// Experiment: a frozen encoder and a trainable decoder, one after the other, on two streams, and as graphs.

#include <iostream>

#include <common/cuda_probe.hpp>
#include <common/options.hpp>
#include <common/report.hpp>
#include <frozen_encoder/options.hpp>
#include <frozen_encoder/run.hpp>
#include <sluice/backend/default.hpp>
#include <sluice/pipeline/nvtx.hpp> // stages show by name in Nsight Systems

namespace {

examples::Report run_on(examples::BackendKind backend, const frozen_encoder::Options& options) {
#if SLUICE_HAS_CUDA
    if (backend == examples::BackendKind::cuda)
        return frozen_encoder::run<sluice::Cuda>(options, std::cout);
#endif
    static_cast<void>(backend); // CUDA is chosen only where it is there.
    return frozen_encoder::run<sluice::Host>(options, std::cout);
}

} // namespace

int main(int argc, char** argv) {
    return examples::run_main(argc, argv, [&] {
        frozen_encoder::Options options;
        if (const auto code = frozen_encoder::parse(argc, argv, options))
            return *code;
        const auto backend = examples::choose_backend(options.backend, examples::probe_cuda());
        const examples::Report report = run_on(backend, options);
        if (!options.json.empty())
            examples::write_json(report, options.json);
        return 0;
    });
}

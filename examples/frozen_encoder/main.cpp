/// \file
/// Experiment: a frozen encoder and a trainable decoder, one after the other, on two streams, and as graphs.

#include <ostream>

#include <common/program.hpp>
#include <frozen_encoder/options.hpp>
#include <frozen_encoder/run.hpp>
#include <sluice/pipeline/nvtx.hpp> // stages show by name in Nsight Systems

int main(int argc, char** argv) {
    return examples::run_program(
        argc, argv, frozen_encoder::parse,
        []<sluice::Backend B>(const frozen_encoder::Options& options, std::ostream& out) {
            return frozen_encoder::run<B>(options, out);
        });
}

/// \file
/// Experiment: a loss over ragged boxes, with and without padding, and a detector that learns by it.

#include <ostream>

#include <common/program.hpp>
#include <masked_giou/options.hpp>
#include <masked_giou/run.hpp>
#include <sluice/pipeline/nvtx.hpp> // stages show by name in Nsight Systems

int main(int argc, char** argv) {
    return examples::run_program(
        argc, argv, masked_giou::parse,
        []<sluice::Backend B>(const masked_giou::Options& options, std::ostream& out) {
            return masked_giou::run<B>(options, out);
        });
}

/// \file
/// Experiment: augmentation on the CPU, on the device, and in a stream of its own.

#include <ostream>

#include <common/program.hpp>
#include <gpu_augment/options.hpp>
#include <gpu_augment/run.hpp>
#include <sluice/pipeline/nvtx.hpp> // stages show by name in Nsight Systems

int main(int argc, char** argv) {
    return examples::run_program(
        argc, argv, gpu_augment::parse,
        []<sluice::Backend B>(const gpu_augment::Options& options, std::ostream& out) {
            return gpu_augment::run<B>(options, out);
        });
}

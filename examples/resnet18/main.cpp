/// \file
/// Experiment: an input ladder for ResNet-18, from one loading thread to images that are enlarged on the device.

#include <ostream>

#include <common/program.hpp>
#include <resnet18/options.hpp>
#include <resnet18/run.hpp>
#include <sluice/pipeline/nvtx.hpp> // stages show by name in Nsight Systems

int main(int argc, char** argv) {
    return examples::run_program(argc, argv, resnet18::parse,
                                 []<sluice::Backend B>(const resnet18::Options& options, std::ostream& out) {
                                     return resnet18::run<B>(options, out);
                                 });
}

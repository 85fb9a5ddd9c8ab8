/// \file
/// Several cameras into one network, live: the newest frames, in order, each one accounted for.

#include <ostream>

#include <common/program.hpp>
#include <live/options.hpp>
#include <live/run.hpp>
#include <sluice/pipeline/nvtx.hpp> // stages show by name in Nsight Systems

int main(int argc, char** argv) {
    return examples::run_program(argc, argv, live::parse,
                                 []<sluice::Backend B>(const live::Options& options, std::ostream& out) {
                                     return live::run<B>(options, out);
                                 });
}

/// \file
/// A spectrometer: power spectra of complex samples, integrated and written to a file.

#include <ostream>

#include <common/program.hpp>
#include <sluice/pipeline/nvtx.hpp> // stages show by name in Nsight Systems
#include <spectrometer/options.hpp>
#include <spectrometer/run.hpp>

int main(int argc, char** argv) {
    return examples::run_program(
        argc, argv, spectrometer::parse,
        []<sluice::Backend B>(const spectrometer::Options& options, std::ostream& out) {
            return spectrometer::run<B>(options, out);
        });
}

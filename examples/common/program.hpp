/// \file
/// An experiment as a program: options in, a report out.
#pragma once

#include <iostream>
#include <optional>
#include <utility>

#include <common/cuda_probe.hpp>
#include <common/options.hpp>
#include <common/report.hpp>
#include <sluice/backend/default.hpp>

namespace examples {

/// The whole of an experiment's `main`: reads the options, runs on the backend that they ask for, and writes
/// the report where they say. Returns the exit code, as `run_main` does.
///
/// \param parse `std::optional<int> parse(int, char**, Options&)`; an exit code when the program is to end at once
/// \param run   callable as `run.template operator()<B>(const Options&, std::ostream&)`, which returns the report
template <class Options, class Run>
int run_program(int argc, char** argv, std::optional<int> (*parse)(int, char**, Options&), Run run) {
    return run_main(argc, argv, [&] {
        Options options;
        if (const auto code = parse(argc, argv, options))
            return *code;
        const Report report = [&] {
            [[maybe_unused]] const BackendKind backend = choose_backend(options.backend, probe_cuda());
#if SLUICE_HAS_CUDA
            if (backend == BackendKind::cuda)
                return run.template operator()<sluice::Cuda>(std::as_const(options), std::cout);
#endif
            return run.template operator()<sluice::Host>(std::as_const(options), std::cout);
        }();
        if (!options.json.empty())
            write_json(report, options.json);
        return 0;
    });
}

} // namespace examples

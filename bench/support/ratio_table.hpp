/// \file
/// A reporter that gathers all repetitions and prints one table at the end.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

namespace bench {

/// For benchmarks made with `measure`. Lines come in the order of registration, each with medians over the
/// repetitions and, in brackets, the smallest and the largest. `--benchmark_out` works beside it.
class RatioTable : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context& context) override;
    void ReportRuns(const std::vector<Run>& runs) override;
    void Finalize() override;

    /// Whether no measured step created or allocated anything.
    bool steady() const { return steady_; }

private:
    struct Line {
        std::string name;
        // Of each counter, one value a repetition.
        std::map<std::string, std::vector<double>> values;
    };
    std::map<std::int64_t, Line> lines_;
    bool steady_ = true;
};

} // namespace bench

/// \file
/// A reporter for benchmarks of `Rounds`: a table for each group of cases, which is a name's part before the first slash.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

namespace bench {

struct RoundColumn {
    enum class Kind { time, comparison };
    std::string name;
    Kind kind;
};

/// Each column is the median over the repetitions, a comparison's with the smallest and the largest in brackets.
/// `--benchmark_out` works beside it.
class RoundTable : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context& context) override;
    void ReportRuns(const std::vector<Run>& runs) override;
    void Finalize() override;

    /// Whether a case could not be run.
    bool failed() const { return failed_; }

    /// Columns stand in the order in which they are first noted.
    static void note_column(const std::string& name, RoundColumn::Kind kind);

private:
    struct Line {
        std::string name;
        std::string error;
        // Of each counter, one value a repetition.
        std::map<std::string, std::vector<double>> values;
    };
    void print_group(const std::vector<Line*>& lines) const;

    std::map<std::int64_t, Line> lines_;
    bool failed_ = false;
};

} // namespace bench

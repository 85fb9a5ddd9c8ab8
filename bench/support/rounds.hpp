/// \file
/// Measures any number of subjects in turns, and compares the times of each round: what happens to the machine
/// meanwhile happens to all of them.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/error.hpp>
#include <sluice/backend/types.hpp>

#include "paired.hpp"
#include "round_table.hpp"
#include "statistics.hpp"

namespace bench {

/// Rounds of one repetition; short bursts want more.
inline constexpr int rounds_per_repetition = 7;

/// Whether the objects and the heap blocks that a subject creates are counted: those of sluice are.
enum class Counted { no, yes };

class Rounds {
public:
    /// `subject` must outlive the rounds.
    template <Subject S>
    void add(const std::string& name, S& subject, const Burst& burst, Counted counted = Counted::no) {
        // The first bursts take it through its first laps, in which graphs are captured.
        run_burst(subject, burst);
        run_burst(subject, burst);
        columns_.push_back({name, [&subject, burst] { return run_burst(subject, burst); }, counted, {}});
    }
    /// A column for the time of `over` by that of `under`; `aim` says what is wanted, such as "<= 1.02".
    void compare(const std::string& over, const std::string& under, const std::string& aim = "") {
        comparisons_.push_back({over + " / " + under + (aim.empty() ? "" : " " + aim),
                                index_of(over),
                                index_of(under),
                                false,
                                {}});
    }
    /// A column for the time of `from` less that of `less`, in microseconds.
    void subtract(const std::string& from, const std::string& less, const std::string& aim = "") {
        comparisons_.push_back(
            {from + " - " + less + (aim.empty() ? "" : " " + aim), index_of(from), index_of(less), true, {}});
    }

    /// One repetition. Counters: the median microseconds a step of each subject, and of the comparisons of each round.
    void run(benchmark::State& state, const sluice::ObjectCounts& counts) {
        Created created{};
        std::uint64_t heap = 0;
        std::size_t first = 0;
        while (state.KeepRunning()) {
            double total = 0;
            for (std::size_t turn = 0; turn < columns_.size(); ++turn) {
                Column& column = columns_[(first + turn) % columns_.size()];
                const Created before = Created::by(counts);
                const sluice::test::HeapCount heap_now;
                const double nanoseconds = column.burst();
                if (column.counted == Counted::yes) {
                    const std::uint64_t made = heap_now.allocations();
                    const Created after = Created::by(counts);
                    heap += made;
                    created.objects += after.objects - before.objects;
                    created.buffers += after.buffers - before.buffers;
                }
                column.times.push_back(nanoseconds * 1e-3);
                total += nanoseconds;
            }
            for (Comparison& comparison : comparisons_) {
                const double a = columns_[comparison.a].times.back();
                const double b = columns_[comparison.b].times.back();
                comparison.values.push_back(comparison.subtracts ? a - b : a / b);
            }
            state.SetIterationTime(total * 1e-9);
            ++first;
        }
        for (const Column& column : columns_)
            report(state, column.name, RoundColumn::Kind::time, column.times);
        for (const Comparison& comparison : comparisons_)
            report(state, comparison.name, RoundColumn::Kind::comparison, comparison.values);
        state.counters["objects"] = static_cast<double>(created.objects);
        state.counters["buffers"] = static_cast<double>(created.buffers);
        state.counters["heap"] = static_cast<double>(heap);
    }

private:
    struct Column {
        std::string name;
        std::function<double()> burst;
        Counted counted;
        std::vector<double> times;
    };
    struct Comparison {
        std::string name;
        std::size_t a;
        std::size_t b;
        bool subtracts;
        std::vector<double> values;
    };

    std::size_t index_of(const std::string& name) const {
        const auto found = std::find_if(columns_.begin(), columns_.end(),
                                        [&](const Column& column) { return column.name == name; });
        if (found == columns_.end())
            throw sluice::Error("no subject is called " + name);
        return static_cast<std::size_t>(found - columns_.begin());
    }
    static void report(benchmark::State& state, const std::string& name, RoundColumn::Kind kind,
                       const std::vector<double>& values) {
        RoundTable::note_column(name, kind);
        state.counters[name] = spread_of(values).median;
    }

    std::vector<Column> columns_;
    std::vector<Comparison> comparisons_;
};

/// Registers a case. `run(state)` makes the subjects and runs the rounds; what it throws is printed in the table.
template <class Run>
void add_rounds(const std::string& name, Run run, int rounds = rounds_per_repetition) {
    benchmark::RegisterBenchmark(name.c_str(),
                                 [run](benchmark::State& state) {
                                     try {
                                         run(state);
                                     } catch (const std::exception& exception) {
                                         state.SkipWithError(exception.what());
                                     }
                                 })
        ->UseManualTime()
        ->Iterations(rounds);
}

} // namespace bench

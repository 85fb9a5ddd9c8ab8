/// \file
/// ragged: what ragged batches cost. See support/main.cpp for how to run it; times are until the work is done.
///
/// - `cuda/ROWS/OPERATION/beside_cub`: an operation on float rows in device memory, beside the best CUB call for it,
///   which is told the number of rows by the host. `…/beside_copy`: beside a copy within device memory that moves as
///   many bytes, so that a ratio of 1.25 is 80 % of the bandwidth of a copy. ROWS are
///   - `short`: 16,777,216 rows of 0 to 16 values,
///   - `skewed`: 4,194,304 rows of 2 to 200,000 values, few of them long, in random order,
///   - `sorted`: the same lengths, the longest first,
///   - `one`: one row of 134,217,728 values.
/// - `BACKEND/pack:1024/…`: 1,024 rows of a few boxes from host memory to the device, gathered by a `RaggedPacker` and
///   copied at once, beside a copy for each row (`beside_copies`), and beside rows padded to 255 boxes and one copy of
///   all (`beside_padded`).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sluice/ragged/packer.hpp>
#include <sluice/random/philox.hpp>
#include <sluice/sluice.hpp>

#include "support/benchmarks.hpp"
#include "support/paired.hpp"

namespace bench {

/// How often something is measured.
struct Effort {
    int steps;             ///< between two synchronisations
    int bursts;            ///< in a repetition
    int repetitions;       ///< whatever the command line says
    std::size_t bytes = 0; ///< that a step must move, for the JSON file; 0: none are counted
};

/// Registers `subject` beside `baseline`, each a callable that makes one, or a reference to one.
template <class MakeSubject, class MakeBaseline>
void add_timed(const std::string& name, const Effort& effort, const sluice::ObjectCounts& counts,
               MakeSubject make_subject, MakeBaseline make_baseline) {
    const Burst burst{.stages = 1, .steps = effort.steps, .until = Until::done};
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=, &counts](benchmark::State& state) {
                                     auto baseline = make_baseline();
                                     auto subject = make_subject();
                                     measure(state, subject, baseline, counts, burst);
                                     if (effort.bytes != 0)
                                         state.counters["bytes"] = static_cast<double>(effort.bytes);
                                 })
        ->UseManualTime()
        ->Iterations(effort.bursts * effort.steps)
        ->Repetitions(effort.repetitions);
}

/// A box as in the masked GIoU experiment.
struct Box {
    std::uint8_t x1, y1, x2, y2;
};
inline constexpr std::int64_t pack_rows = 1024;
inline constexpr std::int64_t pack_width = 255;

/// As many boxes a row as the experiment has: the absolute value of a normal number with deviation 3, rounded down.
inline std::vector<std::vector<Box>> rows_of_boxes() {
    sluice::CountedRandom random(sluice::RandomKey{.seed = 3});
    std::vector<std::vector<Box>> rows(static_cast<std::size_t>(pack_rows));
    for (std::vector<Box>& row : rows) {
        const float radius = std::sqrt(-2.0f * std::log(1.0f - random.uniform()));
        const float normal = radius * std::cos(6.2831853f * random.uniform());
        row.resize(static_cast<std::size_t>(std::abs(3.0f * normal)));
        for (Box& box : row) {
            const auto draw = [&] { return static_cast<std::uint8_t>(random.below(256)); };
            box = {draw(), draw(), draw(), draw()};
        }
    }
    return rows;
}

/// Two packers in turns, as in a pipeline with two slots.
template <class B>
class PackSubject {
public:
    PackSubject()
        : rows_(rows_of_boxes()), packers_{Packer{room}, Packer{room}}, batches_{Batch{room}, Batch{room}} {}
    void step() {
        Packer& packer = packers_[step_ % 2];
        packer.pack(rows_);
        packer.copy_to(stream_, batches_[step_ % 2]);
        ++step_;
    }
    void sync() { stream_.sync(); }

private:
    using Packer = sluice::RaggedPacker<Box, B>;
    using Batch = sluice::RaggedBatch<Box, B>;
    static constexpr sluice::RaggedCapacity room{pack_rows, 8 * pack_rows};

    std::vector<std::vector<Box>> rows_;
    sluice::BasicStream<B> stream_;
    std::array<Packer, 2> packers_;
    std::array<Batch, 2> batches_;
    unsigned step_ = 0;
};

} // namespace bench

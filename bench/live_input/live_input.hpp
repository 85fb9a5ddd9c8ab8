/// \file
/// What the two backends' rows of live_input share: the loops that are measured, and what they note. main.cpp says what the
/// program measures.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bench::live {

/// Nanoseconds of the host's steady clock.
using Time = std::int64_t;
inline Time now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

inline constexpr Time frame_period = 300'000; ///< of the camera
inline constexpr Time infer_time = 1'000'000; ///< what the GPU stage takes for a frame
inline constexpr Time tick_period = 200'000;  ///< of the paced rows
inline constexpr int turns = 5;               ///< of the two sides of a paced row
inline constexpr std::size_t most_stages = 4; ///< of the paced rows

/// What the camera gives.
struct Frame {
    std::uint32_t number;
};

/// A batch that is out of its last stage.
struct End {
    double time;          ///< on the host's clock, nanoseconds
    std::uint32_t number; ///< of the frame, where the stage was told
};

/// Notes when batches leave their last stage, without a host that waits for it.
struct Ends {
    virtual ~Ends() = default;
    /// Forgets what it has. Nothing is under way.
    virtual void restart(std::size_t most) = 0;
    /// Compares the clocks, in some tens of microseconds. Where it `must`, it waits until it can.
    virtual void compare_clocks(bool must) = 0;
    /// In order. Nothing is under way.
    virtual std::vector<End> read() = 0;
    /// Bytes of the device that are in use.
    virtual std::size_t memory() = 0;
    /// A sentence about the clocks' precision so far, or nothing.
    virtual std::string precision() const = 0;
};

struct Counts {
    std::size_t submitted = 0, completed = 0, dropped = 0;
    std::size_t replays = 0; ///< launches of graphs
};

/// One side of a row.
struct Subject {
    virtual ~Subject() = default;
    /// Hands a batch over, or not.
    virtual bool take(const Frame& frame) = 0;
    virtual void finish() = 0;
    /// What it says about itself, after `finish`.
    virtual Counts counts() = 0;
};
using MakeSubject = std::function<std::unique_ptr<Subject>()>;

/// A row of the first table.
struct OverloadRow {
    std::string letter;
    std::string name;
    MakeSubject make;
    double most_p50 = 0, most_p99 = 0; ///< milliseconds asked for, or 0
    std::size_t in_flight = 0;         ///< as many may be under way, or 0
};

/// A row of the second table.
struct PacedRow {
    std::string name;
    MakeSubject sluice;
    MakeSubject by_hand; ///< or none
    bool asked = false;  ///< whether an aim holds for it
    bool graphed = false;
};

/// Nanoseconds of the host a step of two stages, of a burst that is waited for behind it.
struct BoundRow {
    std::string name;
    std::function<double()> burst;
};

/// Nanoseconds of the host a step, until all are enqueued.
template <class Step, class Sync>
double host_time(int steps, Step step, Sync sync) {
    const Time begun = now();
    for (int i = 0; i < steps; ++i)
        step();
    const Time ended = now();
    sync();
    return static_cast<double>(ended - begun) / steps;
}

/// What a backend has to show.
struct Rows {
    std::string device;
    std::unique_ptr<Ends> ends;
    std::vector<OverloadRow> overload;
    std::vector<PacedRow> paced;
    std::vector<BoundRow> bound; ///< default, unbounded, by hand where there is that
};

Rows host_rows();
#ifdef SLUICE_BENCH_CUDA
/// Without rows where there is no device.
Rows cuda_rows();
#endif

} // namespace bench::live

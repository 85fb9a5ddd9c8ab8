/// \file
/// A stage: a name, and a callable that enqueues work.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/callable.hpp>

namespace sluice {

/// Where a stage runs.
template <Backend B = DefaultBackend>
struct StageOptions {
    /// A stream of the caller's to run on. Work that is on it already is done before the pipeline's first
    /// batch, and what the caller enqueues on it after `flush` or `finish` comes after the pipeline's last.
    /// Must outlive the pipeline and belong to its device. Without one, the pipeline makes a non-blocking
    /// stream.
    std::optional<BasicStreamRef<B>> stream = std::nullopt;
    /// Priority of the stream that the pipeline makes: lower runs first, clamped to what the device offers.
    int priority = 0;
    /// Under `Schedule::graphed`, false: the callable is called for each batch, beside the graph of the other stages.
    /// For what cannot be captured or replayed, such as a `Readback`.
    bool graphed = true;
};

/// A step of the work on each batch.
///
/// The callable enqueues work on the stream that it is handed and returns without waiting for it. It is
/// called once a batch, on the thread that drives the pipeline:
///
/// | place | called as |
/// | --- | --- |
/// | first | `callable(stream, const Batch&, Out&)` |
/// | in the middle | `callable(stream, In&, Out&)` |
/// | last | `callable(stream, In&)` |
/// | the only one | `callable(stream, const Batch&)` |
///
/// `In` and `Out` are the slots to its left and right. The stream may be taken as a `StreamRef`, a plain
/// `cudaStream_t`, or a `cuda::stream_ref`; its type says which backend the stage is for. A generic callable
/// is for `DefaultBackend`, unless the options name another: `StageOptions<Host>{}`.
///
/// Under `Schedule::graphed` the callable is called to capture its work, once a slot (and batch of a source's), and
/// its work is replayed from then on. Then nothing that it reads on the host may change from batch to batch: shapes,
/// pointers, scalars. What needs the host each time opts out. A number that changes from batch to batch, such as a
/// learning rate, comes with the batch, in its pinned memory, or lies in the slot, where a stage before that opts out
/// puts it; one that changes seldom, in a `DeviceScalar`, is set after `finish`.
///
/// What it returns is ignored. What it throws fails the pipeline. Its name appears in errors,
/// and as an NVTX range where the program includes `pipeline/nvtx.hpp`.
template <class F, Backend B = detail::BackendOf<F>>
class Stage {
public:
    using Callable = F;
    using backend = B;

    Stage(std::string name, F function, StageOptions<B> options = {})
        : name_(std::move(name)), callable_(std::move(function)), options_(options) {}

    const std::string& name() const noexcept { return name_; }
    F& callable() noexcept { return callable_; }
    const StageOptions<B>& options() const noexcept { return options_; }

private:
    std::string name_;
    F callable_;
    StageOptions<B> options_;
};

template <class F, Backend B = detail::BackendOf<F>>
Stage(std::string, F, StageOptions<B> = {}) -> Stage<F, B>;

} // namespace sluice

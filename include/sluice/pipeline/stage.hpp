/// \file
/// A stage: a name, and a callable that enqueues work.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/boundary/signature.hpp>
#include <sluice/pipeline/detail/checked/declared.hpp>

namespace sluice {

namespace detail {
struct StageAccess;
} // namespace detail

/// Where a stage runs.
template <Backend B = DefaultBackend>
struct StageOptions {
    /// A stream of the caller's to run on. Work that is on it already is done before the pipeline's first
    /// batch, and what the caller enqueues on it after `flush` or `finish` comes after the pipeline's last.
    /// Must outlive the pipeline and belong to the stage's device. Stages of one pipeline that are given the same stream
    /// work in its order under every schedule: on each batch in the order of the list, and all of them before the first one
    /// has the next batch. So they may share a workspace. Without one, the pipeline makes a non-blocking stream.
    std::optional<BasicStreamRef<B>> stream = std::nullopt;
    /// Priority of the streams that the pipeline makes: lower runs first, clamped to what the device offers.
    int priority = 0;
    /// Under `Schedule::graphed`, false: the callable is called for each batch, beside the graphs of the other stages.
    /// For what cannot be captured or replayed.
    bool graphed = true;
    /// The device to run on; -1: the one that was current when the pipeline was made. The stage's slots are made, and
    /// its callable is called, with it current.
    int device = -1;
    /// Batches that the stage works on at the same time, each on a stream (of a CPU stage: a thread) of its own, taken
    /// in turns. With more than 1, its work on one batch must not depend on its work on another. No more lanes work at the
    /// same time than `PipelineOptions::slots` says, also of a stage that makes and reads nothing. It can take a `Lane`, which
    /// tells which one this is.
    int lanes = 1;
    /// Batches that one output is made of, and as many as all rates of the pipeline have in common, at most 2^24: the stage is handed the same slot for so many, and can take a `Turn`, which tells which
    /// of them this is. Stages that read the output run once for all of them, behind the last one, and so do those that read
    /// theirs. Where `finish` comes before there are as many, they run with fewer. A stage that runs once for several batches
    /// cannot take the batch, and neither it nor this one has lanes.
    int every = 1;
    /// True: what the stage's slot held before counts, such as a table that its maker wrote. So it is not poisoned under
    /// `Stress`, see backend/stress.hpp. Otherwise without effect.
    bool keeps_slot = false;
    /// Multiprocessors of its device that the stage has for itself, so that it does not wait behind work of the pipeline's other
    /// stages that fills the device, also in graphs; 0: none. Rounded up to what the device shares out, which is 8 on compute
    /// capability 9.0 and later: `Pipeline::multiprocessors` tells. Stages that ask for none have the others. That is for a
    /// short answer and not for rate: the others take longer. Such a stage is on no stream of the caller's and no CPU stage.
    /// `Cuda` needs a driver and a toolkit of CUDA 12.5, or the constructor throws. Without effect on `Host`, and under
    /// `Schedule::serial`, where each stage has the device to itself; so `Schedule::automatic` does not try that one then.
    int multiprocessors = 0;
};

/// The backend that a stage is for whose callable is a `Function`: that of the stream that it takes; `Host` where it takes none.
template <class Function>
using StageBackend = typename detail::CallableTraits<std::decay_t<Function>>::backend;

/// A step of the work on each batch.
///
/// A GPU stage's callable takes a stream, enqueues work there and returns without waiting for it. It is called once a
/// batch, on the thread that drives the pipeline. After the stream come, by their types, what it reads, in any order:
/// the batch, and what earlier stages made, and last what it makes itself, if it makes anything:
///
/// | it | is called as |
/// | --- | --- |
/// | reads the batch | `callable(stream, const Batch&, Out&)` |
/// | reads one earlier output | `callable(stream, In&, Out&)`, or `const In&` |
/// | reads several | `callable(stream, const Batch&, const Features&, const Targets&, Out&)` |
/// | makes nothing | the same without `Out&` |
///
/// What one stage makes lies in a slot, of which each stage that makes something has a ring. An output that several
/// stages read is taken as `const` by each. Two outputs of one type are told apart by `Tagged`. A callable whose types
/// are not named (`auto`) is taken as one of a plain chain: it reads its neighbour's output.
///
/// A callable that takes no stream is a CPU stage: `callable(const Features&, Out&)` runs on a thread of the stage's own
/// once what it reads is there, and later stages wait for it. What it reads and writes must be in host memory, such as
/// a `PinnedBuffer` of a slot. In a pipeline of another backend, a callable that takes a `HostStreamRef` is one as well.
/// On a GPU the thread that submits waits for its first batch, for a second at most: no stream must while CUDA loads kernels.
///
/// The stream may be taken as a `StreamRef`, a plain `cudaStream_t`, or a `cuda::stream_ref`; its type says which
/// backend the stage is for. A generic callable is for `DefaultBackend`, unless the options name another:
/// `StageOptions<Host>{}`.
///
/// Under `Schedule::graphed` a GPU stage's callable is called the first times that it sees a batch of a kind, and its
/// work is replayed from then on. What tells batches apart is said at `Pipeline`. What the callable reads on the host
/// besides the batch and the slots must not change. A number that changes from batch to batch, such as a learning rate,
/// comes with the batch, in its pinned memory; one that changes seldom, in a `DeviceScalar`, is set after `finish`.
///
/// A callable that is empty, a null pointer or an empty `std::function`, is refused when the pipeline is made; and with it a stage
/// that was moved from, where it can be told: such a stage may only be assigned to or destroyed.
///
/// What it returns is ignored. What it throws fails the pipeline. Its name appears in errors,
/// and as an NVTX range where the program includes `pipeline/nvtx.hpp`.
template <class Function, Backend B = StageBackend<Function>>
class Stage {
    static_assert(
        !detail::takes_stream_late<typename detail::Signature<Function>::parameters>,
        "sluice::Stage: a callable takes its stream first, as in (stream, const Batch&, const In&..., Out&)");
    static_assert(!detail::takes_stream_owner<typename detail::Signature<Function>::parameters>,
                  "sluice::Stage: a callable takes its stream by value, as a StreamRef or a HostStreamRef, "
                  "and not what owns the stream");

public:
    /// What the stage calls.
    using Callable = Function;
    /// The backend that it is for.
    using backend = B;

    /// Calls `function` for each batch; `name` appears in errors. Takes both by value.
    Stage(std::string name, Function function, StageOptions<B> options = {})
        : name_(static_cast<std::string&&>(name)), callable_(static_cast<Function&&>(function)),
          options_(options) {}
    /// The same. Throws `Error` for a null pointer.
    Stage(const char* name, Function function, StageOptions<B> options = {})
        : name_(detail::require_text("a stage's name", name)), callable_(static_cast<Function&&>(function)),
          options_(options) {}

    /// Says that the stage's work on each batch reads, or writes, all of `memory`, which is neither the batch nor a slot: a
    /// buffer, a span, or what has a `block()`, such as a `RaggedBatch`. On a checked backend (backend/checked.hpp) a race
    /// with other work is an `Error`; on others nothing is kept. `Stage{"train", f}.reads(weights).writes(statistics)`.
    /// `memory` must stay where it is as long as the stage is used.
    /// @{
    template <class Memory>
    Stage& reads(const Memory& memory) & {
        declared_.add(memory, false);
        return *this;
    }
    template <class Memory>
    Stage reads(const Memory& memory) && {
        declared_.add(memory, false);
        return std::move(*this);
    }
    template <class Memory>
    Stage& writes(const Memory& memory) & {
        declared_.add(memory, true);
        return *this;
    }
    template <class Memory>
    Stage writes(const Memory& memory) && {
        declared_.add(memory, true);
        return std::move(*this);
    }
    /// @}

    /// As given.
    const std::string& name() const noexcept { return name_; }
    /// The callable, for the pipeline.
    Function& callable() noexcept { return callable_; }
    /// As given.
    const StageOptions<B>& options() const noexcept { return options_; }
    /// What `reads` and `writes` have said, for the pipeline.
    const detail::Declared<B>& declared() const noexcept { return declared_; }

private:
    friend struct detail::StageAccess;

    std::string name_;
    Function callable_;
    StageOptions<B> options_;
    [[no_unique_address]] detail::Declared<B> declared_;
};

namespace detail {
template <class T>
inline constexpr bool is_stage = false;
template <class Function, class B>
inline constexpr bool is_stage<Stage<Function, B>> = true;
} // namespace detail

/// Of a callable, for the backend of its stream or of the options.
template <class Function, Backend B = StageBackend<Function>>
Stage(std::string, Function, StageOptions<B> = {}) -> Stage<Function, B>;
/// The same.
template <class Function, Backend B = StageBackend<Function>>
Stage(const char*, Function, StageOptions<B> = {}) -> Stage<Function, B>;

namespace detail {
struct NotTagged {};
} // namespace detail

/// A value of a class under a name of its own, so that two outputs of one type are two types. Used as a `T`.
///
/// \code
/// struct Left; // before, and not within a function, where nvcc stumbles over it
/// struct Right;
/// sluice::Stage join{"join", [](sluice::StreamRef stream, const sluice::Tagged<Left, Features>& left,
///                               const sluice::Tagged<Right, Features>& right, Loss& out) { ... }};
/// const auto make_left = [](int) { return sluice::Tagged<Left, Features>{Features{batch_size}}; };
/// \endcode
template <class Tag, class T>
struct Tagged : std::conditional_t<std::is_class_v<T>, T, detail::NotTagged> {
    static_assert(std::is_class_v<T>,
                  "sluice::Tagged: what is tagged must be a class, since a Tagged derives from it; put a "
                  "number or a pointer into a struct of its own, which needs no tag");
    /// What tells it from others of its type.
    using tag = Tag;
};

} // namespace sluice

// What a pipeline tells the checker: the one interface between them.
#pragma once

#include <cstddef>
#include <optional>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/boundary/stage_call.hpp>

namespace sluice::detail {

template <Backend B>
class StageCore;
template <Backend B>
class Executor;

/// Of a backend that is not checked: nothing is told, and nothing done.
template <Backend B, bool = IsChecked<B>::value>
class PipelineChecks {
    using Core = StageCore<B>;
    using Ref = BasicStreamRef<B>;
    using Given = GivenBatch<B>;

public:
    static constexpr bool listens = false; ///< Whether any of it does something.
    /// Within the first, work is a stage's on a batch; within the second, the library's own; within the third, that of a
    /// callable that a stream has been handed.
    /// @{
    struct StageScope {};
    struct LibraryScope {
        LibraryScope() noexcept {}
    };
    struct CallScope {};
    /// @}
    /// Stands for a callable that a thread has been handed.
    struct Call {};

    /// Throws `Error` where a pipeline is to be checked.
    PipelineChecks(const std::optional<bool>& checked, int) {
        if (checked.value_or(false)) {
            throw Error("PipelineOptions::checked: the program was compiled without the checker; compile all "
                        "of it with -DSLUICE_CHECKED=1");
        }
    }

    /// Whether anything is looked for.
    static constexpr bool on() noexcept { return false; }

    // While a pipeline is made.
    static void stage_added(const StageSetup<B>&) noexcept {}
    static void slots_begin() noexcept {}
    static void slot_begins() noexcept {}
    static void slots_made(const Core&, std::size_t, std::size_t) noexcept {}
    static void made(Core&) noexcept {}

    // When a stage is called.
    static StageScope scope(const Core&, std::size_t, Ref, std::size_t) noexcept { return {}; }
    static void before_call(Core&, std::size_t, Ref, std::size_t) noexcept {}
    static void after_call(Core&, std::size_t, Ref, std::size_t, const Given&) noexcept {}
    /// Where there is another order than the stages' own: calls `enqueue(stage)` for each in it, and says so.
    template <class Enqueue>
    static bool enqueue_in_other_order(const Core&, Enqueue&&) noexcept {
        return false;
    }

    // When it is called by a thread.
    template <class Waits>
    static Call thread_is_handed(Core&, std::size_t, BasicStreamRef<Host>, std::size_t, const Given&,
                                 const Waits&) noexcept {
        return {};
    }
    static void thread_was_handed(Core&, std::size_t, BasicStreamRef<Host>, std::size_t) noexcept {}
    static CallScope call_scope(const Call&) noexcept { return {}; }
    static void before_thread_calls(Core&, std::size_t, std::size_t) noexcept {}
    static void thread_waited_for(BasicStreamRef<Host>) noexcept {}

    // Of batches that are held for graphs to come.
    static void graph_begins_with(std::size_t) noexcept {}
    static void other_work_noted() noexcept {}
    static void let_go(bool) noexcept {}
    static void drop() noexcept {}
    /// Throws what a destructor has met.
    static void throw_pending() noexcept {}
    /// The destructor has caught something.
    static void not_thrown() noexcept {}
    static void batch_submitted(const Core&, const Executor<B>&, std::size_t, const Given&) noexcept {}
    static void batch_stays(std::size_t) noexcept {}
    static void executor_called(const Core&, const Executor<B>&) noexcept {}
};

} // namespace sluice::detail

#include <sluice/pipeline/detail/checked/pipeline_checks.hpp>

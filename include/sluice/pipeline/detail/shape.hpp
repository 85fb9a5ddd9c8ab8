/// \file
/// A pipeline's plan, and which of its stages run where.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/plan.hpp>

namespace sluice::detail {

/// The backend of a pipeline: that of its GPU stages, `Host` where there is none.
template <class... Ss>
struct PipelineBackend {
    using type = Host;
};
template <class S, class... Ss>
struct PipelineBackend<S, Ss...> {
    using type =
        typename std::conditional_t<!CallableTraits<typename S::Callable>::takes_stream ||
                                        std::is_same_v<typename S::backend, Host>,
                                    PipelineBackend<Ss...>, std::type_identity<typename S::backend>>::type;
};

template <class StageTuple, class MakerTuple, Backend B>
struct Shape : Plan<StageTuple, MakerTuple> {
    using Plan<StageTuple, MakerTuple>::stages;
    using Plan<StageTuple, MakerTuple>::edges;
    using Plan<StageTuple, MakerTuple>::bindings;
    using StageTypes = StageTuple;
    using Makers = MakerTuple;
    using backend = B;
    template <std::size_t Index>
    using StageAt = std::tuple_element_t<Index, StageTuple>;

    /// The backend's streams are threads: CPU stages run on streams of it like any other.
    static constexpr bool host_streams = std::is_same_v<typename B::NativeStream, host::Queue*>;
    /// Stage I's callable is called on a stream's thread.
    template <std::size_t Index>
    static constexpr bool called_as_task =
        host_streams&& Plan<StageTuple, MakerTuple>::template is_cpu<Index>;
    /// Stage I runs on threads beside the backend's streams.
    template <std::size_t Index>
    static constexpr bool runs_aside =
        !host_streams && (Plan<StageTuple, MakerTuple>::template is_cpu<Index> ||
                          !std::is_same_v<typename StageAt<Index>::backend, B>);

    static constexpr std::array<bool, stages> aside = []<std::size_t... Is>(std::index_sequence<Is...>) {
        return std::array<bool, stages>{runs_aside<Is>...};
    }
    (std::make_index_sequence<stages>{});
    /// CPU stages cannot be captured.
    static constexpr std::array<bool, stages> capturable = []<std::size_t... Is>(std::index_sequence<Is...>) {
        return std::array<bool, stages>{!(runs_aside<Is> || called_as_task<Is>)...};
    }
    (std::make_index_sequence<stages>{});
    static constexpr bool all_capturable = [] {
        bool all = true;
        for (const bool one : capturable)
            all = all && one;
        return all;
    }();
    static constexpr bool any_aside = [] {
        bool any = false;
        for (const bool one : aside)
            any = any || one;
        return any;
    }();

    /// Whether a stage i waits for stage j on another stream, or across streams and threads.
    static constexpr bool awaited_by(std::size_t j, bool through_event) {
        for (std::size_t i = 0; i < stages; ++i) {
            if ((edges.same[i][j] || edges.former[i][j]) && (through_event == !(aside[i] || aside[j])))
                return true;
        }
        return false;
    }
    /// Overlapped, stage j's end is an event for those that wait on streams, and, unless the semaphore does, for whoever
    /// refills the batch,
    static constexpr bool needs_event(std::size_t j) {
        return !aside[j] && (awaited_by(j, true) || (bindings.reads_batch[j] && !needs_semaphore(j)));
    }
    /// and a semaphore for those that wait on threads, and for all that wait for a thread.
    static constexpr bool needs_semaphore(std::size_t j) { return awaited_by(j, false) || aside[j]; }
};

} // namespace sluice::detail

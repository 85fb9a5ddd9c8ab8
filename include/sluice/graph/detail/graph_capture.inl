// Bodies of graph_capture.hpp.
#pragma once

#include <sluice/backend/error.hpp>
#include <sluice/graph/graph_capture.hpp>

namespace sluice {

template <class Key, GraphBackend B>
template <class F>
inline Replay GraphCapture<Key, B>::run(Ref stream, const Key& key, F&& work) {
    if constexpr (detail::check_work<B, F>()) {
        detail::require_callable("GraphCapture: the work", work);
        return core_.run(stream, __builtin_addressof(key), work);
    } else {
        return {};
    }
}

template <class Key, GraphBackend B>
template <class F, std::invocable<> Eager, std::predicate<> IsWarm, std::invocable<> BeforeLaunch>
inline Replay GraphCapture<Key, B>::run_or(Ref stream, const Key& key, F&& work, Eager&& eager,
                                           IsWarm&& is_warm, BeforeLaunch&& before_launch) {
    if constexpr (detail::check_work<B, F>()) {
        detail::require_callable("GraphCapture: the work", work);
        detail::require_callable("GraphCapture: the eager work", eager);
        detail::require_callable("GraphCapture: is_warm", is_warm);
        detail::require_callable("GraphCapture: before_launch", before_launch);
        return core_.run_or(
            stream, __builtin_addressof(key), work, [&](bool) { eager(); }, is_warm, before_launch);
    } else {
        return {};
    }
}

template <class Key, GraphBackend B>
template <std::invocable<> BeforeLaunch>
inline bool GraphCapture<Key, B>::replay(Ref stream, const Key& key, BeforeLaunch&& before_launch) {
    detail::require_callable("GraphCapture: before_launch", before_launch);
    return core_.replay(stream, __builtin_addressof(key), before_launch);
}

template <class Key, GraphBackend B>
template <class F>
inline Replay GraphCapture<Key, B>::recapture(Ref stream, const Key& key, F&& work) {
    if constexpr (detail::check_work<B, F>()) {
        detail::require_callable("GraphCapture: the work", work);
        return core_.recapture(stream, __builtin_addressof(key), work);
    } else {
        return {};
    }
}

} // namespace sluice

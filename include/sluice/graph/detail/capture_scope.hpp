// Where work is being handed to: to a stream that runs it, or to a capture.
#pragma once

#include <sluice/backend/graph_concept.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice::detail {

/// The capture that a stream belongs to, or none. What objects note on the host during a capture goes with it: they keep the
/// scope, and compare it with that of the next call.
template <Backend B>
struct CaptureScope {
    bool captured = false;

    bool operator==(const CaptureScope&) const = default;
    static CaptureScope of(BasicStreamRef<B>) { return {}; }
};
template <GraphBackend B>
struct CaptureScope<B> {
    bool captured = false;
    typename B::NativeGraph graph{};
    unsigned long long number = 0; // tells captures into graphs at the same address apart

    bool operator==(const CaptureScope&) const = default;
    /// Throws `Error` where the capture has become invalid.
    static CaptureScope of(BasicStreamRef<B> stream) {
        if (!B::is_capturing(stream.get()))
            return {};
        return {true, B::capturing_graph(stream.get()), B::capture_number(stream.get())};
    }
};

} // namespace sluice::detail

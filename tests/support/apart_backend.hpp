// A backend whose streams are not those that CPU stages run on, as a device's are not.
#pragma once

#include <sluice/backend/graph_concept.hpp>
#include <sluice/backend/semaphore.hpp>

#include "support/delayed_backend.hpp"

namespace sluice::test {

/// The Host backend under another type of stream: so pipelines take it for a device's, and have CPU stages run on
/// threads beside its streams. Streams are late as `Delay::set` says.
struct Apart : Delayed<Host> {
    struct NativeStream {
        host::Queue* queue = nullptr;
        operator host::Queue*() const noexcept { return queue; }
        friend bool operator==(NativeStream, NativeStream) = default;
    };
    static constexpr const char* name = "apart";

    static NativeStream create_stream(const StreamOptions& options) { return {Host::create_stream(options)}; }
};

static_assert(Backend<Apart> && GraphBackend<Apart> && SemaphoreBackend<Apart>);

} // namespace sluice::test

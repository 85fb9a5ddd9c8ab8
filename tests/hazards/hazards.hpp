// Programs for the checked backend to judge: what it must find in a faulty one, and that it finds nothing in a right one.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <sluice/backend/checked.hpp>
#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/sluice.hpp>

#include "support/any_call.hpp"
#include "support/doctest.hpp"
#include "support/gate.hpp"
#include "support/library_core.hpp"

namespace sluice::test {

#if defined(SLUICE_TEST_CUDA)
using Plain = UncheckedCuda;
#elif SLUICE_CHECKED
using Plain = UncheckedHost;
#else
/// The Host backend, and a stream that counts as CUDA's legacy default stream.
struct Plain : UncheckedHost {
    static NativeStream legacy() {
        static const BasicStream<UncheckedHost> stream = BasicStream<UncheckedHost>::make_inline();
        return stream.get();
    }
    static bool is_default_stream(NativeStream stream) { return stream == legacy(); }
    static bool is_blocking(NativeStream stream) {
        return is_default_stream(stream) || stream->options().blocking;
    }
};
#endif

/// The backend that judges. In a program compiled with SLUICE_CHECKED=1 `Host` and `Cuda` are checked themselves.
#if SLUICE_CHECKED && defined(SLUICE_TEST_CUDA)
using B = Cuda;
#elif SLUICE_CHECKED
using B = Host;
#else
using B = Checked<Plain>;
#endif

using Ref = BasicStreamRef<B>;
using Stream = BasicStream<B>;
using Event = BasicEvent<B>;
using Device = DeviceBuffer<float, B>;
using Pinned = PinnedBuffer<float, B>;
using checked::Mistake;

/// Elements of each buffer below.
inline constexpr std::size_t count = 64;

/// The backend's legacy default stream, if it has one.
std::optional<Ref> legacy_default_stream();

/// A buffer with a name. On the host it holds zeros, and nothing that an earlier program has left there.
template <class Buffer = Device>
Buffer named(const char* name, std::size_t size = count) {
    Buffer buffer(size);
    name_buffer(buffer, name);
    if constexpr (std::is_same_v<Buffer, Pinned>) {
        for (float& element : buffer)
            element = 0;
    }
    return buffer;
}

/// A pinned buffer with a name that holds 0, 1, 2 …
Pinned numbered(const char* name);

/// What most programs need. All device buffers have been written; streams are done when it goes.
struct World {
    Device images = named("images"), labels = named("labels"), features = named("features"),
           weights = named("weights"), workspace = named("workspace"), probe = named("probe");
    Pinned host_images = numbered("host images"), host_labels = numbered("host labels"),
           result = numbered("result");
    Event event, other_event;
    std::optional<Gate<Plain>> gate;
    Stream main, side, third;

    World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;
    ~World();

    /// Keeps a stream busy until `open` is called or the world goes. The checker sees nothing of it.
    void hold(Ref stream);
    void open();
};

/// `later` waits for all that `earlier` has been handed.
inline void order(Ref earlier, Ref later, Event& event) {
    event.record(earlier);
    later.wait(event);
}

/// What a host node decides for true with. On CUDA kernels alone decide, and what is not decided is true.
inline auto decides(ConditionSetter setter) {
    return [setter] {
        if (!setter.kernels_only)
            setter.set(true);
    };
}

/// Waits for the stream in fact, without the checker's knowledge: what comes after is safe, and found all the same.
inline void settle(Ref stream) { Plain::synchronize_stream(stream.get()); }

/// One end of what is found: the stage, otherwise the operation, and the stage's batch where it is certain.
struct Side {
    const char* who = nullptr;
    std::optional<std::size_t> batch = {};
};

/// What must be found.
struct Hazard {
    std::vector<Mistake> mistakes; ///< Any of these.
    const char* buffer;            ///< Its name; null: any.
    Side first = {}, second = {};
    bool either_order = false; ///< Threads decide which side comes first.
    bool may_be_missing = false;
};

inline Hazard race(const char* buffer, Side first, Side second) {
    return {{Mistake::race}, buffer, first, second};
}
inline Hazard host_race(const char* buffer, Side first, Side second) {
    return {{Mistake::host_race}, buffer, first, second};
}
/// Between threads, neither of which need be the caller's.
inline Hazard thread_race(const char* buffer, Side first, Side second) {
    return {{Mistake::race, Mistake::host_race}, buffer, first, second, true};
}
inline Hazard use_after_free(const char* buffer, Side first, Side second = {}) {
    return {{Mistake::use_after_free}, buffer, first, second};
}
inline Hazard uninitialized(const char* buffer, Side reader) {
    return {{Mistake::uninitialized_read}, buffer, {}, reader};
}
/// Also found beside the others, perhaps.
inline Hazard perhaps(Hazard hazard) {
    hazard.may_be_missing = true;
    return hazard;
}

using Program = AnyCall<void(World&)>;

/// Runs `program` twice: once to collect all that is found, which must be `hazards` and nothing else, and once to see that
/// an `Error` tells of one of them. On CUDA, where kernels write unseen, nothing must be found of uninitialised reads.
void find(std::initializer_list<Hazard> hazards, const Program& program);
inline void find(const Hazard& hazard, const Program& program) { find({hazard}, program); }

/// Runs `program`, of which nothing must be found, waits that order nothing included.
void pass(const Program& program);

/// Runs `program`, in which nothing is wrong but waits of `stream` that order nothing.
void find_unnecessary_wait(const Program& program);

} // namespace sluice::test

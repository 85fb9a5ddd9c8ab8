// A backend can be written by others: here one that wraps the Host backend and counts.
#include <sluice/memory/copy.hpp>

#include "support/doctest.hpp"

namespace backend_concept {

using namespace sluice;

namespace {

struct Counting : Host {
    static inline int copies = 0;
    static void copy(void* to, const void* from, std::size_t bytes, CopyKind kind, NativeStream stream) {
        ++copies;
        Host::copy(to, from, bytes, kind, stream);
    }
};

struct WithoutCopy {
    using NativeStream = int*;
    using NativeEvent = int*;
    static constexpr const char* name = "incomplete";
};

} // namespace

static_assert(Backend<Counting>);
static_assert(!Backend<WithoutCopy>);
static_assert(!Backend<int>);

TEST_CASE("the owners work over a backend of the user's") {
    const BasicStream<Counting> stream;
    BasicEvent<Counting> event;
    DeviceBuffer<int, Counting> device(4);
    PinnedBuffer<int, Counting> pinned(4);
    for (int& value : pinned)
        value = 3;
    Counting::copies = 0;
    copy(stream, device, pinned);
    event.record(stream);
    event.sync();
    CHECK(Counting::copies == 1);

    int seen[4] = {};
    copy_and_wait(stream, seen, device);
    CHECK(Counting::copies == 2);
    for (const int value : seen)
        CHECK(value == 3);
}

} // namespace backend_concept

// What is known of streams that wait for semaphores, when streams go.
#include <cstdint>

#include <sluice/backend/detail/deferred_frees.hpp>
#include <sluice/backend/semaphore.hpp>
#include <sluice/memory.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace backend_semaphore_waits {

using namespace sluice;
using namespace sluice::test;
using detail::SemaphoreWaits;

namespace {

using B = TestBackend;

/// Whether a stream with this handle waits for what no stream will signal.
bool any_of(const void* handle) {
    return SemaphoreWaits::instance().any(
        [](const void* asked, const void* stream) { return asked == stream; }, handle);
}

const SemaphoreWaits::Calls calls{
    [](void* semaphore) { return *static_cast<std::uint32_t*>(semaphore); },
    [](void* semaphore, std::uint32_t value) { *static_cast<std::uint32_t*>(semaphore) = value; }};

} // namespace

TEST_CASE("a stream that goes leaves its waits to no later one, and they still end with the semaphore") {
    SemaphoreWaits& waits = SemaphoreWaits::instance();
    std::uint32_t semaphore = 0;
    const int stream = 0, other = 0;
    waits.add({&semaphore, 3, &stream, true, &calls});
    waits.add({&semaphore, 2, &other, true, &calls});
    waits.forget_stream(&stream);
    CHECK_FALSE(any_of(&stream));
    CHECK_FALSE(any_of(nullptr));
    CHECK(any_of(&other));
    CHECK_FALSE(waits.give_up(&stream)); // at once
    CHECK(semaphore == 0);
    waits.end_waits(&semaphore);
    CHECK(semaphore == 3);
    CHECK_FALSE(any_of(&other));
}

TEST_CASE("what a stream that has gone will signal is still waited for") {
    SemaphoreWaits& waits = SemaphoreWaits::instance();
    std::uint32_t semaphore = 0;
    const int stream = 0, other = 0;
    waits.add({&semaphore, 1, &stream, false, &calls});
    waits.forget_stream(&stream);
    waits.add({&semaphore, 1, &other, true, &calls});
    CHECK_FALSE(any_of(&other));
    waits.forget(&semaphore);
}

TEST_CASE("buffers end while a stream waits for what this thread signals later") {
    const BasicStream<B> stream;
    BasicSemaphore<B> semaphore;
    DeviceBuffer<int, B> kept(1);
    {
        DeviceBuffer<int, B> device(1000);
        PinnedBuffer<int, B> pinned(1000);
        semaphore.wait(stream, 1);
    }
    kept = DeviceBuffer<int, B>(2);
    CHECK(semaphore.value() == 0);
    CHECK_FALSE(stream.is_done());
    semaphore.signal(1);
    stream.sync();
    CHECK(detail::DeferredFrees::instance().count() == 0);
}

#if defined(SLUICE_TEST_CUDA)
// On the Host backend a stream that goes waits for its work.
TEST_CASE("a stream that goes before its wait is over is not taken for a later one") {
    const BasicStream<B> other;
    BasicSemaphore<B> semaphore;
    const void* handle = nullptr;
    {
        const BasicStream<B> stream;
        handle = stream.get();
        semaphore.wait(stream, 1);
        CHECK(any_of(handle));
    }
    CHECK_FALSE(any_of(handle));
    CHECK(semaphore.value() == 0);
    semaphore.signal(1);
    other.sync();
}
#endif

} // namespace backend_semaphore_waits

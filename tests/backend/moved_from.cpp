// A stream, an event or a semaphore that was moved from says so when it is used, and may be assigned to.
#include <chrono>
#include <utility>

#include <sluice/backend/event.hpp>
#include <sluice/backend/semaphore.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/self_move.hpp"

namespace backend_moved_from {

using namespace sluice;
using namespace sluice::test;

template <class Use>
void check_refused(const char* what, Use&& use) {
    CHECK(text_of(use) == moved_from(what));
}

TEST_CASE_TEMPLATE("a stream that was moved from is not the default stream", B, TestBackend) {
    BasicStream<B> stream;
    const BasicStream<B> taken = std::move(stream);
    const BasicEvent<B> event;
    DeviceBuffer<float, B> to(4);
    const PinnedBuffer<float, B> from(4);
    check_refused("stream", [&] { stream.sync(); });
    check_refused("stream", [&] { (void)stream.is_done(); });
    check_refused("stream", [&] { stream.wait(event); });
    check_refused("stream", [&] { (void)stream.device(); });
    check_refused("stream", [&] { (void)stream.priority(); });
    check_refused("stream", [&] { (void)stream.ref(); });
    check_refused("stream", [&] { copy(stream, to, from); });
    check_refused("stream", [&] { const DeviceBuffer<float, B> made(4, stream); });
    stream = BasicStream<B>();
    copy(stream, to, from);
    stream.sync();
    B::destroy_stream(stream.release());
    check_refused("stream", [&] { stream.sync(); });
}

TEST_CASE("a null handle is no stream of the Host backend") {
    BasicStream<Host> stream;
    const BasicStream<Host> taken = std::move(stream);
    CHECK(text_of([&] { (void)BasicStreamRef<Host>(stream.get()); }) ==
          "a reference to a stream was made of a null handle, which names no stream of the host backend; "
          "expected a "
          "stream");
}

TEST_CASE_TEMPLATE("an event that was moved from is refused", B, TestBackend) {
    const BasicStream<B> stream;
    BasicEvent<B> event;
    const BasicEvent<B> taken = std::move(event);
    check_refused("event", [&] { event.record(stream); });
    check_refused("event", [&] { event.sync(); });
    check_refused("event", [&] { (void)event.is_done(); });
    check_refused("event", [&] { stream.wait(event); });
    check_refused("event", [&] { (void)elapsed_milliseconds(event, taken); });
    check_refused("event", [&] { (void)elapsed_milliseconds(taken, event); });
    event = BasicEvent<B>();
    event.record(stream);
    event.sync();
}

TEST_CASE_TEMPLATE("a semaphore that was moved from is refused", B, TestBackend) {
    const BasicStream<B> stream;
    BasicSemaphore<B> semaphore;
    const BasicSemaphore<B> taken = std::move(semaphore);
    check_refused("semaphore", [&] { semaphore.signal(stream, 1); });
    check_refused("semaphore", [&] { semaphore.wait(stream, 1); });
    check_refused("semaphore", [&] { semaphore.signal(1); });
    check_refused("semaphore", [&] { (void)semaphore.value(); });
    check_refused("semaphore", [&] { (void)semaphore.reached(0); });
    check_refused("semaphore", [&] { (void)semaphore.wait_for(0, std::chrono::nanoseconds(0)); });
    check_refused("semaphore", [&] { semaphore.reset(); });
    semaphore = BasicSemaphore<B>();
    semaphore.signal(stream, 1);
    stream.sync();
    CHECK(semaphore.reached(1));
}

TEST_CASE_TEMPLATE("streams, events, semaphores and buffers stay what they are when moved into themselves", B,
                   TestBackend) {
    BasicStream<B> stream;
    BasicEvent<B> event;
    DeviceBuffer<int, B> device(4);
    PinnedBuffer<int, B> pinned(4);
    pinned[3] = 7;
    move_into_itself(stream);
    move_into_itself(event);
    move_into_itself(device);
    move_into_itself(pinned);
    copy(stream, device, pinned);
    copy(stream, pinned, device);
    event.record(stream);
    event.sync();
    CHECK(pinned[3] == 7);
    BasicSemaphore<B> semaphore;
    move_into_itself(semaphore);
    semaphore.signal(stream, 1);
    stream.sync();
    CHECK(semaphore.value() == 1);
}

} // namespace backend_moved_from

// An owner destroys its event once, whatever it is moved onto.
#include <utility>

#include <sluice/backend/stream.hpp>

#include "support/alive.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace backend_event_ownership {

using namespace sluice;
using namespace sluice::test;

TEST_CASE_TEMPLATE("an event lives as long as its owner", B, TestBackend) {
    const Alive before = alive_now<B>();
    const auto created = B::counts().events.created.load();
    {
        BasicEvent<B> first;
        const BasicEvent<B> second{std::move(first)};
        CHECK(alive_now<B>().events == before.events + 1);
        CHECK(B::counts().events.created == created + 1);
        CHECK(second.is_done());
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE_TEMPLATE("an event may be moved onto itself", B, TestBackend) {
    const BasicStream<B> stream;
    const Alive before = alive_now<B>();
    {
        BasicEvent<B> event;
        const auto native = event.get();
        move_onto_itself(event);
        CHECK(event.get() == native);
        CHECK(alive_now<B>().events == before.events + 1);
        event.record(stream);
        event.sync();
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE_TEMPLATE("an event moved onto another destroys that one", B, TestBackend) {
    const Alive before = alive_now<B>();
    {
        BasicEvent<B> target;
        BasicEvent<B> moved;
        const auto native = moved.get();
        target = std::move(moved);
        CHECK(target.get() == native);
        CHECK(alive_now<B>().events == before.events + 1);
        moved = BasicEvent<B>{};
        CHECK(alive_now<B>().events == before.events + 2);
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE_TEMPLATE("a released event is the caller's, and can be adopted", B, TestBackend) {
    const BasicStream<B> stream;
    const Alive before = alive_now<B>();
    {
        typename B::NativeEvent native{};
        {
            BasicEvent<B> event;
            native = event.release();
        }
        CHECK(alive_now<B>().events == before.events); // it is no longer sluice's

        auto adopted = BasicEvent<B>::from_native_handle(native);
        CHECK(adopted.get() == native);
        adopted.record(stream);
        adopted.sync();
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE_TEMPLATE("recording and waiting create nothing", B, TestBackend) {
    const BasicStream<B> writer;
    const BasicStream<B> reader;
    BasicEvent<B> event;
    const auto created = B::counts().events.created.load();
    for (int i = 0; i < 100; ++i) {
        event.record(writer);
        reader.wait(event);
    }
    reader.sync();
    CHECK(B::counts().events.created == created);
}

} // namespace backend_event_ownership

// An owner destroys its stream once, whatever it is moved onto.
#include <utility>
#include <vector>

#include "support/alive.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/on_stream.hpp"

namespace backend_stream_ownership {

using namespace sluice;
using namespace sluice::test;

TEST_CASE_TEMPLATE("a stream lives as long as its owner", B, TestBackend) {
    const Alive before = alive_now<B>();
    const auto created = B::counts().streams.created.load();
    {
        const BasicStream<B> first;
        const BasicStream<B> second;
        CHECK(alive_now<B>().streams == before.streams + 2);
        CHECK(B::counts().streams.created == created + 2);
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE_TEMPLATE("a moved stream is the same stream", B, TestBackend) {
    const Alive before = alive_now<B>();
    {
        BasicStream<B> first;
        const auto native = first.get();
        const BasicStream<B> second{std::move(first)};
        CHECK(second.get() == native);
        CHECK(alive_now<B>().streams == before.streams + 1);
        second.sync();
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE_TEMPLATE("a stream may be moved onto itself", B, TestBackend) {
    const Alive before = alive_now<B>();
    {
        BasicStream<B> stream;
        const auto native = stream.get();
        move_onto_itself(stream);
        CHECK(stream.get() == native);
        CHECK(alive_now<B>().streams == before.streams + 1);

        bool ran = false;
        run_on(stream, [&ran] { ran = true; });
        stream.sync();
        CHECK(ran);
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE_TEMPLATE("a stream moved onto another destroys that one", B, TestBackend) {
    const Alive before = alive_now<B>();
    {
        BasicStream<B> target;
        BasicStream<B> moved;
        const auto native = moved.get();
        target = std::move(moved);
        CHECK(target.get() == native);
        CHECK(alive_now<B>().streams == before.streams + 1);

        moved = BasicStream<B>{}; // a moved-from stream may be assigned to
        moved.sync();
        target.sync();
        CHECK(alive_now<B>().streams == before.streams + 2);
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE_TEMPLATE("streams move within containers", B, TestBackend) {
    const Alive before = alive_now<B>();
    {
        std::vector<BasicStream<B>> streams;
        for (int i = 0; i < 5; ++i) // which grows, and so moves them
            streams.emplace_back();
        streams.erase(streams.begin() + 1);
        CHECK(alive_now<B>().streams == before.streams + 4);
        for (const auto& stream : streams)
            stream.sync();
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE_TEMPLATE("a released stream is the caller's, and can be adopted", B, TestBackend) {
    const Alive before = alive_now<B>();
    {
        typename B::NativeStream native{};
        {
            BasicStream<B> stream;
            native = stream.release();
            CHECK(stream.get() == typename B::NativeStream{});
        }
        CHECK(alive_now<B>().streams == before.streams); // it is no longer sluice's

        const auto adopted = BasicStream<B>::from_native_handle(native);
        CHECK(adopted.get() == native);
        bool ran = false;
        run_on(adopted, [&ran] { ran = true; });
        adopted.sync();
        CHECK(ran);
    }
    CHECK(alive_now<B>() == before);
}

TEST_CASE_TEMPLATE("a reference destroys nothing", B, TestBackend) {
    const BasicStream<B> stream;
    const Alive before = alive_now<B>();
    {
        const BasicStreamRef<B> ref = stream;
        CHECK(ref.is_done());
    }
    CHECK(alive_now<B>() == before);
    stream.sync();
}

} // namespace backend_stream_ownership

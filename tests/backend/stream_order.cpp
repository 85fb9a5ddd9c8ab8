// Work on one stream runs in the order in which it was enqueued.
#include <numeric>
#include <vector>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/on_stream.hpp"

namespace backend_stream_order {

using namespace sluice;
using namespace sluice::test;

TEST_CASE_TEMPLATE("a stream runs its work in order", B, TestBackend) {
    const BasicStream<B> stream;
    std::vector<int> seen;
    for (int i = 0; i < 100; ++i)
        run_on(stream, [&seen, i] { seen.push_back(i); });
    stream.sync();

    std::vector<int> expected(100);
    std::iota(expected.begin(), expected.end(), 0);
    CHECK(seen == expected);
}

TEST_CASE_TEMPLATE("enqueueing does not wait, synchronizing does", B, TestBackend) {
    const BasicStream<B> stream;
    const ScopedLatch latch;
    bool ran = false;
    CHECK(stream.is_done());

    hold(stream, latch);
    run_on(stream, [&ran] { ran = true; });
    CHECK_FALSE(stream.is_done());
    CHECK_FALSE(latch.timed_out()); // which says that it was not opened by waiting

    latch.open();
    stream.sync();
    CHECK(ran);
    CHECK(stream.is_done());
}

TEST_CASE_TEMPLATE("an owner and references to it are one stream", B, TestBackend) {
    const BasicStream<B> stream;
    const BasicStreamRef<B> ref = stream;
    const BasicStreamRef<B> copy = ref;
    CHECK(ref == stream.ref());
    CHECK(copy == ref);
    CHECK(ref.get() == stream.get());
    CHECK(ref.device() == stream.device());

    const BasicStream<B> other;
    CHECK_FALSE(ref == other.ref());

    const ScopedLatch latch;
    hold(stream, latch);
    CHECK_FALSE(copy.is_done());
    CHECK(other.is_done());
    latch.open();
    copy.sync();
    CHECK(stream.is_done());
}

} // namespace backend_stream_order

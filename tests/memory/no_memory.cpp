// Null pointers that come with a size are refused where they are given, not where the stream gets there.
#include <cstddef>
#include <span>

#include <sluice/graph/graph_builder.hpp>
#include <sluice/graph/ping_pong.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/memory/pitched.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace memory_no_memory {

using namespace sluice;
using namespace sluice::test;

namespace {

template <class B>
struct Memory {
    DeviceBuffer<int, B> device{5};
    PinnedBuffer<int, B> pinned{5};
    DeviceSpan<int, B> no_device{nullptr, 5};
    PinnedSpan<int, B> no_pinned{nullptr, 5};
};

} // namespace

TEST_CASE_TEMPLATE("no memory is neither copied nor filled", B, TestBackend) {
    const BasicStream<B> stream;
    Memory<B> all;
    const auto copied = [&](auto&& to, auto&& from) { return text_of([&] { copy(stream, to, from); }); };
    CHECK(copied(all.device, all.no_pinned) ==
          "copy: for the source a null pointer to 5 elements was given; expected memory that holds as many");
    CHECK(copied(all.no_device, all.device) ==
          "copy: for the destination a null pointer to 5 elements was given; "
          "expected memory that holds as many");
    CHECK(contains(copied(all.no_pinned, all.pinned), "for the destination a null pointer"));
    CHECK(contains(copied(all.no_device, all.no_device), "for the source a null pointer"));
    CHECK(contains(copied(all.device.first(1), all.no_pinned.first(1)), "to 1 element was given"));
    CHECK(copied(DeviceSpan<int, B>(nullptr, 0), PinnedSpan<int, B>(nullptr, 0)).empty());
    const std::span<const int> none(static_cast<const int*>(nullptr), 5);
    CHECK(
        contains(text_of([&] { copy_and_wait(stream, all.device, none); }), "for the source a null pointer"));
    CHECK(text_of([&] { fill(stream, all.no_device, 1); }) ==
          "fill: for the memory a null pointer to 5 elements was given; expected memory that holds as many");
    CHECK(contains(text_of([&] { fill_bytes(stream, all.no_device, 1); }),
                   "fill_bytes: for the memory a null"));
    CHECK(text_of([&] { fill(stream, DeviceSpan<int, B>(nullptr, 0), 1); }).empty());
    CHECK(contains(text_of([&] { (void)PitchedSpan(all.no_device, 2, 2); }),
                   "a pitched span: for its memory a null pointer to 5 elements"));
    CHECK(text_of([&] { (void)PitchedSpan(all.no_device, 0, 2); }).empty());
    stream.sync();
}

TEST_CASE_TEMPLATE("nodes of a graph, and pairs, are not made of no memory", B, TestBackend) {
    Memory<B> all;
    BasicGraphBuilder<B> builder;
    CHECK(contains(text_of([&] { (void)builder.copy(all.device, all.no_pinned); }),
                   "a copy node: for the source a null pointer to 5 elements"));
    CHECK(contains(text_of([&] { (void)builder.fill(all.no_device, 0); }),
                   "a fill node: for the memory a null pointer to 5 elements"));
    const auto copied = builder.copy(all.device, all.pinned);
    const auto filled = builder.fill(all.device, 0, {copied});
    auto executable = builder.instantiate();
    CHECK(contains(text_of([&] { executable.set(copied, all.no_device, all.pinned); }),
                   "a copy node: for the destination a null pointer"));
    CHECK(contains(text_of([&] { executable.set(filled, all.no_device, 1); }),
                   "a fill node: for the memory a null"));
    using Pair = PingPong<int, B>;
    CHECK(contains(text_of([&] { Pair pair(all.no_device, all.device); }),
                   "a ping-pong pair: for the first buffer a null pointer to 5 elements"));
    CHECK(contains(text_of([&] { Pair pair(all.device, all.no_device); }),
                   "for the second buffer a null pointer"));
}

} // namespace memory_no_memory

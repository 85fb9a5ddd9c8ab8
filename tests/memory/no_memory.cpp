// Null pointers that come with a size, and sizes that no memory has, are refused where they are given, not where the stream gets
// there.
#include <cstddef>
#include <limits>
#include <span>
#include <string>

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

// So many of 4 bytes that the number of bytes is a small one again: that of one element.
constexpr std::size_t wrapped = (std::numeric_limits<std::size_t>::max)() / sizeof(int) + 2;

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

TEST_CASE_TEMPLATE("what is longer than any memory is neither copied nor filled", B, TestBackend) {
    const BasicStream<B> stream;
    Memory<B> all;
    const DeviceSpan<int, B> device{all.device.data(), wrapped}, other{all.device.data() + 4, wrapped};
    const PinnedSpan<int, B> pinned{all.pinned.data(), wrapped};
    CHECK(text_of([&] { copy(stream, device, pinned); }) ==
          "copy: for the source a pointer to " + std::to_string(wrapped) +
              " elements of 4 bytes each was given; expected memory that holds as many");
    CHECK(contains(text_of([&] { copy(stream, pinned, device); }), "for the source a pointer to"));
    CHECK(contains(text_of([&] { copy(stream, other, device); }), "for the source a pointer to"));
    int one = 0;
    const std::span<int> host(&one, wrapped);
    CHECK(contains(text_of([&] { copy_and_wait(stream, device, host); }), "for the source a pointer to"));
    CHECK(contains(text_of([&] { copy_and_wait(stream, host, device); }), "for the source a pointer to"));
    CHECK(contains(text_of([&] { fill(stream, device, 1); }), "fill: for the memory a pointer to"));
    CHECK(contains(text_of([&] { fill_bytes(stream, device, 1); }), "fill_bytes: for the memory a pointer"));
    // Elements of one byte can be counted, and would go on behind the last address.
    const DeviceSpan<std::byte, B> bytes{reinterpret_cast<std::byte*>(all.device.data()), ~std::size_t{0}};
    CHECK(contains(text_of([&] { fill_bytes(stream, bytes, 1); }), "elements of 1 byte each was given"));
    CHECK(contains(text_of([&] { (void)PitchedSpan(device, 2, 2); }),
                   "a pitched span: for its memory a pointer to"));
    CHECK(text_of([&] { (void)PitchedSpan(all.device, 2, 1, wrapped); }) ==
          "a pitched span has a pitch of " + std::to_string(wrapped) +
              " elements of 4 bytes each; expected no more than any memory holds");
    (void)PitchedSpan(all.device, 5, 1, wrapped - 2);
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
    const DeviceSpan<int, B> device{all.device.data(), wrapped};
    const PinnedSpan<int, B> pinned{all.pinned.data(), wrapped};
    CHECK(contains(text_of([&] { (void)builder.copy(device, pinned); }), "a copy node: for the source a"));
    CHECK(contains(text_of([&] { (void)builder.fill(device, 0); }), "a fill node: for the memory a pointer"));
    CHECK(contains(text_of([&] { executable.set(copied, device, pinned); }), "for the source a pointer to"));
    CHECK(contains(text_of([&] { executable.set(filled, device, 1); }), "for the memory a pointer to"));
    using Pair = PingPong<int, B>;
    CHECK(contains(text_of([&] { Pair pair(all.no_device, all.device); }),
                   "a ping-pong pair: for the first buffer a null pointer to 5 elements"));
    CHECK(contains(text_of([&] { Pair pair(all.device, all.no_device); }),
                   "for the second buffer a null pointer"));
}

} // namespace memory_no_memory

// Owners of memory: their sizes, and that each allocation is freed once.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>

#include "support/alive.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace memory_buffer {

using namespace sluice;
using namespace sluice::test;

namespace {

/// What holds for both kinds of buffers.
template <class B, class Buffer>
void check_ownership(std::uint64_t Alive::*allocations) {
    using T = typename Buffer::value_type;
    const Alive before = alive_now<B>();
    const auto allocated = [&] { return alive_now<B>().*allocations - before.*allocations; };
    {
        Buffer first(10);
        CHECK(first.size() == 10);
        CHECK(first.bytes() == 10 * sizeof(T));
        CHECK_FALSE(first.empty());
        CHECK(allocated() == 1);
        T* const memory = first.data();
        CHECK(memory != nullptr);
        CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);

        move_onto_itself(first);
        CHECK(first.data() == memory);
        CHECK(first.size() == 10);
        CHECK(allocated() == 1);

        Buffer second{std::move(first)};
        CHECK(second.data() == memory);
        CHECK(second.size() == 10);
        CHECK(first.data() == nullptr);
        CHECK(first.empty());
        CHECK(allocated() == 1);

        Buffer third(20);
        CHECK(allocated() == 2);
        third = std::move(second); // onto a live one, which frees its own
        CHECK(third.data() == memory);
        CHECK(third.size() == 10);
        CHECK(second.empty());
        CHECK(allocated() == 1);

        second = Buffer(5); // a moved-from buffer may be assigned to
        CHECK(second.size() == 5);
        CHECK(allocated() == 2);

        second = Buffer{};
        CHECK(second.empty());
        CHECK(allocated() == 1);

        std::vector<Buffer> several;
        for (std::size_t i = 0; i < 5; ++i)
            several.emplace_back(i + 1);
        several.erase(several.begin());
        CHECK(several.front().size() == 2);
        CHECK(allocated() == 5);
    }
    CHECK(alive_now<B>() == before);
}

template <class B, class Buffer>
void check_empty() {
    const Alive before = alive_now<B>();
    const auto device = B::counts().device_allocations.created.load();
    const auto pinned = B::counts().pinned_allocations.created.load();
    Buffer none;
    Buffer zero(0);
    for (Buffer* buffer : {&none, &zero}) {
        CHECK(buffer->size() == 0);
        CHECK(buffer->bytes() == 0);
        CHECK(buffer->empty());
        CHECK(buffer->data() == nullptr);
        CHECK(buffer->span().empty());
    }
    none = std::move(zero);
    move_onto_itself(none);
    CHECK(alive_now<B>() == before);
    CHECK(B::counts().device_allocations.created == device);
    CHECK(B::counts().pinned_allocations.created == pinned);
}

struct Pixel {
    std::uint8_t red, green, blue;
};

template <class Buffer>
concept HasParts = requires(Buffer&& buffer) {
    std::forward<Buffer>(buffer).subspan(0, 1);
    std::forward<Buffer>(buffer).first(1);
    std::forward<Buffer>(buffer).last(1);
};

/// What holds for the parts of both kinds of buffers.
template <class Span, class ConstSpan, class Buffer>
void check_parts() {
    static_assert(HasParts<Buffer&> && HasParts<const Buffer&>);
    static_assert(!HasParts<Buffer> && !HasParts<const Buffer>); // their memory would be gone

    Buffer buffer(10);
    const Buffer& constant = buffer;
    const Span middle = buffer.subspan(3, 4);
    CHECK(middle.data() == buffer.data() + 3);
    CHECK(middle.size() == 4);
    const ConstSpan same = constant.subspan(3, 4);
    CHECK(same.data() == buffer.data() + 3);
    CHECK(same.size() == 4);
    const Span front = buffer.first(2);
    CHECK(front.data() == buffer.data());
    CHECK(front.size() == 2);
    CHECK(constant.first(10).size() == 10);
    const Span back = buffer.last(2);
    CHECK(back.data() == buffer.data() + 8);
    CHECK(back.size() == 2);
    CHECK(constant.last(10).data() == buffer.data());
    CHECK(buffer.subspan(10, 0).empty());

    CHECK(text_of([&] { (void)buffer.subspan(7, 4); }) ==
          "subspan: 4 elements from 7 on were asked for, of a span of 10");
    CHECK(text_of([&] { (void)constant.first(11); }) ==
          "subspan: 11 elements from 0 on were asked for, of a span of 10");
    CHECK(text_of([&] { (void)buffer.last(11); }) == "last: 11 elements were asked for, of a span of 10");
    CHECK_FALSE(text_of([] {
                    Buffer none;
                    (void)none.first(1);
                }).empty());
}

} // namespace

TEST_CASE_TEMPLATE("parts of a buffer are spans", B, TestBackend) {
    check_parts<DeviceSpan<int, B>, DeviceSpan<const int, B>, DeviceBuffer<int, B>>();
    check_parts<PinnedSpan<int, B>, PinnedSpan<const int, B>, PinnedBuffer<int, B>>();
}

TEST_CASE_TEMPLATE("a device buffer frees its memory once", B, TestBackend) {
    check_ownership<B, DeviceBuffer<float, B>>(&Alive::device_allocations);
    check_ownership<B, DeviceBuffer<Pixel, B>>(&Alive::device_allocations);
}

TEST_CASE_TEMPLATE("a pinned buffer frees its memory once", B, TestBackend) {
    check_ownership<B, PinnedBuffer<float, B>>(&Alive::pinned_allocations);
    check_ownership<B, PinnedBuffer<Pixel, B>>(&Alive::pinned_allocations);
}

TEST_CASE_TEMPLATE("a buffer without elements takes no memory", B, TestBackend) {
    check_empty<B, DeviceBuffer<double, B>>();
    check_empty<B, PinnedBuffer<double, B>>();
}

TEST_CASE_TEMPLATE("a pinned buffer is an array on the host", B, TestBackend) {
    PinnedBuffer<int, B> buffer(100);
    std::iota(buffer.begin(), buffer.end(), 0);
    const PinnedBuffer<int, B>& constant = buffer;
    CHECK(constant.end() - constant.begin() == 100);
    CHECK(std::accumulate(constant.begin(), constant.end(), 0) == 4950);
    buffer[7] = -1;
    CHECK(constant[7] == -1);
    CHECK(constant.data()[7] == -1);
    CHECK(&buffer[99] == buffer.end() - 1);
}

TEST_CASE_TEMPLATE("a count that no memory can hold is refused before anything is allocated", B,
                   TestBackend) {
    const Alive before = alive_now<B>();
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    const std::string text =
        "a buffer of " + std::to_string(most / 4) + " elements of 8 bytes each is larger than any memory";
    CHECK(text_of([&] { const DeviceBuffer<double, B> buffer(most / 4); }) == text);
    CHECK(text_of([&] { const PinnedBuffer<double, B> buffer(most / 4); }) == text);
    const BasicStream<B> stream;
    CHECK(text_of([&] { const DeviceBuffer<double, B> buffer(most / 4, stream); }) == text);
    CHECK(alive_now<B>().device_allocations == before.device_allocations);
    CHECK(alive_now<B>().pinned_allocations == before.pinned_allocations);
}

TEST_CASE("pinned memory past the CPU's caches is like any other to copies, and goes with its buffer") {
    using B = TestBackend;
    const Alive before = alive_now<B>();
    {
        PinnedBuffer<int, B> from(1000, {.write_combined = true});
        CHECK(alive_now<B>().pinned_allocations == before.pinned_allocations + 1);
        for (std::size_t i = 0; i < from.size(); ++i)
            from[i] = static_cast<int>(i * i);
        DeviceBuffer<int, B> on_device(from.size());
        PinnedBuffer<int, B> to(from.size());
        const BasicStream<B> stream;
        copy(stream, on_device, from);
        copy(stream, to, on_device);
        stream.sync();
        bool same = true;
        for (std::size_t i = 0; i < to.size(); ++i)
            same = same && to[i] == static_cast<int>(i * i);
        CHECK(same);
#if defined(SLUICE_TEST_CUDA)
        unsigned flags = 0;
        SLUICE_CUDA_CHECK(cudaHostGetFlags(&flags, from.data()));
        CHECK((flags & cudaHostAllocWriteCombined) != 0);
        SLUICE_CUDA_CHECK(cudaHostGetFlags(&flags, to.data()));
        CHECK((flags & cudaHostAllocWriteCombined) == 0);
#endif
    }
    CHECK(alive_now<B>().pinned_allocations == before.pinned_allocations);
    CHECK(PinnedBuffer<int, B>(0, {.write_combined = true}).empty());
}

TEST_CASE("memory has a number while it is there, and none has none") {
    auto& allocations = detail::Allocations::instance();
    std::vector<DeviceBuffer<char, TestBackend>> buffers;
    std::vector<std::uint64_t> numbers;
    for (int i = 0; i < 300; ++i) {
        buffers.emplace_back(256);
        numbers.push_back(allocations.number_of(buffers.back().data()));
        CHECK(numbers.back() != 0);
    }
    // Any part of it has, and what is behind it has not.
    const char* const begin = buffers.front().data();
    CHECK(allocations.number_of(begin + 1) == numbers.front());
    CHECK(allocations.number_of(begin + 255) == numbers.front());
    CHECK(allocations.number_of(begin + 256) != numbers.front());
    const char none[2] = {};
    allocations.add(none, 0); // takes a place, too
    CHECK(allocations.number_of(none) != 0);
    CHECK(allocations.number_of(none + 1) == 0);
    allocations.remove(none);
    CHECK(allocations.number_of(none) == 0);
    allocations.remove(begin + 1); // nothing begins there
    CHECK(allocations.number_of(begin) == numbers.front());
    const void* const first = buffers.front().data();
    CHECK(allocations.number_of(first) == numbers.front());
    CHECK(allocations.number_of(nullptr) == 0);
    buffers.clear();
    CHECK(allocations.number_of(first) == 0);
    CHECK(allocations.number_of(nullptr) == 0);
}

} // namespace memory_buffer

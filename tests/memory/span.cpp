// Spans: parts of them, and what converts to what. Touches no device.
#include <array>
#include <span>
#include <type_traits>
#include <vector>

#include <sluice/memory/buffer.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace memory_span {

using namespace sluice;
using namespace sluice::test;

namespace {

template <class B>
constexpr bool converts_as_documented() {
    using Device = DeviceSpan<float, B>;
    using ConstDevice = DeviceSpan<const float, B>;
    using Pinned = PinnedSpan<float, B>;
    using ConstPinned = PinnedSpan<const float, B>;

    static_assert(std::is_trivially_copyable_v<Device> && std::is_trivially_copyable_v<Pinned>);
    static_assert(sizeof(Device) == 2 * sizeof(void*));

    // To const, not from it.
    static_assert(std::is_convertible_v<Device, ConstDevice> &&
                  !std::is_constructible_v<Device, ConstDevice>);
    static_assert(std::is_convertible_v<Pinned, ConstPinned> &&
                  !std::is_constructible_v<Pinned, ConstPinned>);
    static_assert(!std::is_constructible_v<DeviceSpan<const int, B>, Device>);

    // Buffers to their own kind of span; constant ones to spans of constant elements only.
    using DeviceOwner = DeviceBuffer<float, B>;
    using PinnedOwner = PinnedBuffer<float, B>;
    static_assert(std::is_convertible_v<DeviceOwner&, Device> &&
                  std::is_convertible_v<DeviceOwner&, ConstDevice>);
    static_assert(std::is_convertible_v<PinnedOwner&, Pinned> &&
                  std::is_convertible_v<PinnedOwner&, ConstPinned>);
    static_assert(std::is_convertible_v<const DeviceOwner&, ConstDevice>);
    static_assert(!std::is_convertible_v<const DeviceOwner&, Device>);
    static_assert(std::is_convertible_v<const PinnedOwner&, ConstPinned>);
    static_assert(!std::is_convertible_v<const PinnedOwner&, Pinned>);

    // Never from one place to the other.
    static_assert(!std::is_constructible_v<Device, Pinned> && !std::is_constructible_v<Pinned, Device>);
    static_assert(!std::is_constructible_v<Device, PinnedOwner&>);
    static_assert(!std::is_constructible_v<Pinned, DeviceOwner&>);
    static_assert(!std::is_constructible_v<Device, std::span<float>>);
    static_assert(!std::is_constructible_v<Device, std::vector<float>&>);
    static_assert(!std::is_constructible_v<Pinned, std::span<float>>);

    // Pinned memory is host memory, the device's is not.
    static_assert(std::is_convertible_v<Pinned, std::span<float>>);
    static_assert(std::is_convertible_v<ConstPinned, std::span<const float>>);
    static_assert(std::is_convertible_v<PinnedOwner&, std::span<float>>);
    static_assert(!std::is_constructible_v<std::span<float>, Device>);
    static_assert(!std::is_constructible_v<std::span<float>, DeviceOwner&>);

    static_assert(!std::is_copy_constructible_v<DeviceOwner> && !std::is_copy_assignable_v<DeviceOwner>);
    static_assert(!std::is_copy_constructible_v<PinnedOwner> && !std::is_copy_assignable_v<PinnedOwner>);
    static_assert(std::is_nothrow_move_constructible_v<DeviceOwner> &&
                  std::is_nothrow_move_assignable_v<DeviceOwner>);
    static_assert(std::is_nothrow_move_constructible_v<PinnedOwner> &&
                  std::is_nothrow_move_assignable_v<PinnedOwner>);
    static_assert(!std::is_convertible_v<std::size_t, DeviceOwner>); // a count is not a buffer
    static_assert(!std::is_convertible_v<std::size_t, PinnedOwner>);
    return true;
}
static_assert(converts_as_documented<Host>());

template <class Span>
concept Indexed = requires(Span span) {
    span[0];
};
template <class Span>
concept Iterated = requires(Span span) {
    span.begin();
};
static_assert(!Indexed<DeviceSpan<float, Host>> && !Iterated<DeviceSpan<float, Host>>);
static_assert(!Indexed<DeviceBuffer<float, Host>&> && !Iterated<DeviceBuffer<float, Host>&>);
static_assert(Indexed<PinnedSpan<float, Host>> && Iterated<PinnedSpan<float, Host>>);

#if SLUICE_HAS_CUDA
static_assert(converts_as_documented<Cuda>());
static_assert(!std::is_constructible_v<DeviceSpan<float, Cuda>, DeviceSpan<float, Host>>);
static_assert(!std::is_constructible_v<DeviceSpan<const float, Host>, DeviceSpan<float, Cuda>>);
#endif

} // namespace

TEST_CASE("a span has a place and a length") {
    std::array<int, 10> memory{};
    const DeviceSpan<int, Host> span(memory.data(), memory.size());
    CHECK(span.data() == memory.data());
    CHECK(span.size() == 10);
    CHECK(span.bytes() == 10 * sizeof(int));
    CHECK_FALSE(span.empty());

    const DeviceSpan<int, Host> none;
    CHECK(none.data() == nullptr);
    CHECK(none.empty());
    CHECK(none.bytes() == 0);

    const DeviceSpan<const int, Host> constant = span;
    CHECK(constant.data() == memory.data());
    CHECK(constant.size() == 10);
}

TEST_CASE_TEMPLATE("a span of more bytes than can be counted", Span, DeviceSpan<int, Host>,
                   PinnedSpan<int, Host>) {
    int value = 0;
    const std::size_t most = ~std::size_t{0} / sizeof(int);
    CHECK(Span(&value, most).bytes() == most * sizeof(int));
    CHECK(text_of([&] { (void)Span(&value, most + 1).bytes(); }) ==
          "bytes: a span of 4611686018427387904 elements of 4 bytes each is larger than any memory");
}

TEST_CASE_TEMPLATE("parts of a span", Span, DeviceSpan<int, Host>, PinnedSpan<int, Host>,
                   DeviceSpan<const int, Host>, PinnedSpan<const int, Host>) {
    std::array<int, 10> memory{};
    const Span span(memory.data(), memory.size());

    const Span middle = span.subspan(3, 4);
    CHECK(middle.data() == memory.data() + 3);
    CHECK(middle.size() == 4);
    CHECK(span.first(2).data() == memory.data());
    CHECK(span.first(2).size() == 2);
    CHECK(span.last(2).data() == memory.data() + 8);
    CHECK(span.last(2).size() == 2);

    CHECK(span.subspan(0, 10).size() == 10);
    CHECK(span.first(10).size() == 10);
    CHECK(span.last(10).data() == memory.data());
    CHECK(span.subspan(10, 0).empty()); // at the end there is nothing, which is no mistake
    CHECK(span.last(0).empty());
    CHECK(Span{}.first(0).empty());
}

TEST_CASE_TEMPLATE("a part that is not all there is refused", Span, DeviceSpan<int, Host>,
                   PinnedSpan<int, Host>) {
    std::array<int, 10> memory{};
    const Span span(memory.data(), memory.size());
    CHECK(text_of([&] { (void)span.subspan(7, 4); }) ==
          "subspan: 4 elements from 7 on were asked for, of a span of 10");
    CHECK_FALSE(text_of([&] { (void)span.subspan(11, 0); }).empty());
    CHECK_FALSE(text_of([&] { (void)span.first(11); }).empty());
    CHECK(text_of([&] { (void)span.last(11); }) == "last: 11 elements were asked for, of a span of 10");
    CHECK_FALSE(text_of([&] { (void)Span{}.first(1); }).empty());
    // Numbers so large that their sum is small again.
    CHECK_FALSE(text_of([&] { (void)span.subspan(2, static_cast<std::size_t>(-1)); }).empty());
    CHECK_FALSE(text_of([&] { (void)span.subspan(static_cast<std::size_t>(-1), 2); }).empty());
}

TEST_CASE("a pinned span is read and written like an array") {
    std::array<int, 4> memory{1, 2, 3, 4};
    const PinnedSpan<int, Host> span(memory.data(), memory.size());
    int sum = 0;
    for (int& value : span)
        sum += value++;
    CHECK(sum == 10);
    CHECK(span[3] == 5);
    span[0] = 9;
    CHECK(memory == std::array<int, 4>{9, 3, 4, 5});
    const std::span<int> plain = span;
    CHECK(plain.data() == memory.data());
    CHECK(plain.size() == 4);
}

} // namespace memory_span

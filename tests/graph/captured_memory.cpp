// Typed fills, and copies within pinned memory, in graphs.
#include <cstdint>
#include <vector>

#include <sluice/graph/capture.hpp>
#include <sluice/memory/copy.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace graph_captured_memory {

using namespace sluice;
using namespace sluice::test;

TEST_CASE_TEMPLATE("typed fills are captured, and replays fill", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<std::uint8_t, B> bytes(3);
    DeviceBuffer<std::uint16_t, B> shorts(3);
    DeviceBuffer<float, B> floats(3);
    const auto clear = [&] {
        fill_bytes(stream, bytes, 0);
        fill_bytes(stream, shorts, 0);
        fill_bytes(stream, floats, 0);
    };
    const auto filling = [&](std::uint8_t byte, std::uint16_t word, float number) {
        return capture(stream, [&](BasicStreamRef<B> s) {
            fill(s, bytes, byte);
            fill(s, shorts.first(2), word);
            fill(s, floats.last(2), number);
        });
    };
    const auto check = [&](std::uint8_t byte, std::uint16_t word, float number) {
        std::vector<std::uint8_t> some_bytes(3);
        std::vector<std::uint16_t> some_shorts(3);
        std::vector<float> some_floats(3);
        copy_and_wait(stream, some_bytes, bytes);
        copy_and_wait(stream, some_shorts, shorts);
        copy_and_wait(stream, some_floats, floats);
        CHECK(some_bytes == std::vector<std::uint8_t>{byte, byte, byte});
        CHECK(some_shorts == std::vector<std::uint16_t>{word, word, 0});
        CHECK(some_floats == std::vector<float>{0, number, number});
    };
    clear();
    const auto graph = filling(3, 0x1122, 0.75F);
    CHECK(graph.nodes() == 3);
    check(0, 0, 0); // nothing has run
    BasicGraphExec<B> executable(graph);
    executable.launch(stream);
    check(3, 0x1122, 0.75F);
    clear();
    executable.launch(stream);
    check(3, 0x1122, 0.75F);
    CHECK(executable.update(filling(4, 0x3344, 8.0F)));
    executable.launch(stream);
    check(4, 0x3344, 8.0F);
}

TEST_CASE_TEMPLATE("a copy from pinned to pinned memory is captured", B, TestBackend) {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> from(3);
    PinnedBuffer<int, B> to(3);
    from[1] = 5;
    to[1] = 0;
    const auto graph = capture(stream, [&](BasicStreamRef<B> s) { copy(s, to, from); });
    CHECK(graph.nodes() == 1);
    CHECK(to[1] == 0);
    BasicGraphExec<B> executable(graph);
    for (const int value : {6, 7}) {
        from[1] = value;
        executable.launch(stream);
        stream.sync();
        CHECK(to[1] == value);
    }
}

} // namespace graph_captured_memory

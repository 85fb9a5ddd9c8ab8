// Operations that make ragged batches out of others, compared with plain loops over lists: once enqueued, and
// once replayed from a graph that was captured before the rows were there.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <sluice/graph/capture.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/ragged/packer.hpp>
#if defined(SLUICE_TEST_CUDA)
#include <sluice/ragged/reshape.cuh>
#else
#include <sluice/ragged/reshape.hpp>
#endif

#include "ragged/random_rows.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/sanitized.hpp"

namespace sluice::test::reshape_case {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using Number = std::uint32_t;

/// Moved as one word, though its type asks for no alignment.
struct Box {
    std::uint8_t x1, y1, x2, y2;
    friend bool operator==(const Box&, const Box&) = default;
};
/// Cannot be moved as one word.
struct Odd {
    std::uint8_t byte[3];
    friend bool operator==(const Odd&, const Odd&) = default;
};
/// Larger than a word.
struct Long {
    std::uint32_t word[5];
    friend bool operator==(const Long&, const Long&) = default;
};

template <class T>
T value_of(Number number) {
    const Number words[] = {number, ~number, number * 3u, number ^ 0x5a5a5a5au, number + 1u};
    static_assert(sizeof(T) <= sizeof(words));
    T value;
    std::memcpy(&value, words, sizeof(T));
    return value;
}

/// Rows that fit, as random_rows makes them.
template <class T>
Lists<T> lists_for(RaggedCapacity room, std::uint64_t sample) {
    Lists<T> lists;
    for (const std::vector<Number>& row : random_rows(room, sample, 11)) {
        lists.emplace_back();
        for (const Number number : row)
            lists.back().push_back(value_of<T>(number));
    }
    return lists;
}

/// A batch that an operation reads.
template <class T>
struct Operand {
    Operand(Ref stream, RaggedCapacity room) : packer(room), batch(room, stream) {}

    void load(Ref stream, Lists<T> rows) {
        lists = std::move(rows);
        packer.pack(lists);
        packer.copy_to(stream, batch);
    }
    RaggedView<const T> view() const { return batch.view(); }

    Lists<T> lists;
    RaggedPacker<T, B> packer;
    RaggedBatch<T, B> batch;
};

/// Numbers that an operation reads.
template <class T>
struct Numbers {
    Numbers(Ref stream, std::int64_t count) : memory(static_cast<std::size_t>(count), stream) {}

    void load(Ref stream, std::vector<T> values) {
        host = std::move(values);
        copy_and_wait(stream, memory, host);
    }
    DeviceSpan<const T, B> span() const { return memory.span(); }
    std::vector<T> read(Ref stream) const {
        std::vector<T> values(memory.size());
        copy_and_wait(stream, values, memory.span());
        return values;
    }

    std::vector<T> host;
    DeviceBuffer<T, B> memory;
};

template <class T>
void poison(Ref stream, RaggedBatch<T, B>& out) {
    fill_bytes(stream, out.block(), 0xee);
}

/// Checks that `out` holds `expected`, or, when there is no room for them, nothing but what they would need.
template <class T>
void expect(Ref stream, const char* what, const RaggedBatch<T, B>& out, const Lists<T>& expected) {
    INFO(what);
    const auto rows = static_cast<std::int64_t>(expected.size());
    RaggedCounts counts{rows, 0, 0, 0};
    for (const std::vector<T>& row : expected) {
        const auto length = static_cast<std::int64_t>(row.size());
        counts.values += length;
        counts.longest = length > counts.longest ? length : counts.longest;
    }
    if (rows > out.capacity().rows || counts.values > out.capacity().values) {
        const RaggedCounts got = out.counts_and_wait(stream);
        const bool too_many_rows = rows > out.capacity().rows;
        CHECK(got == (too_many_rows ? RaggedCounts{0, 0, 0, rows, RaggedExcess::rows}
                                    : RaggedCounts{0, 0, 0, counts.values, RaggedExcess::values}));
        CHECK(contains(text_of([&] { out.require_valid_and_wait(stream); }),
                       std::to_string(got.refused) + (too_many_rows ? " row" : " value")));
        return;
    }
    REQUIRE(out.counts_and_wait(stream) == counts);
    out.require_valid_and_wait(stream);
    CHECK(to_lists_and_wait(stream, out) == expected);
}

/// Runs `Case`, which has `load(stream, sample)`, `poison(stream)`, `enqueue(stream)` and `check(stream)`.
template <class Case, class... Arguments>
void drive(std::uint64_t samples, const Arguments&... arguments) {
    const BasicStream<B> stream;
    Case tested(stream, arguments...);
    if (sanitized)
        samples = 1 + samples / 4;
    const auto run = [&](std::uint64_t sample, auto&& enqueue) {
        CAPTURE(sample);
        tested.load(stream, sample);
        tested.poison(stream);
        enqueue();
        tested.check(stream);
    };
    for (std::uint64_t sample = 0; sample < samples; ++sample)
        run(sample, [&] { tested.enqueue(stream); });

    INFO("replayed");
    const BasicGraph<B> graph = capture(stream, [&](Ref capturing) { tested.enqueue(capturing); });
    const BasicGraphExec<B> executable(graph);
    for (std::uint64_t sample = samples; sample < 2 * samples; ++sample)
        run(sample, [&] { executable.launch(stream); });
}

/// Rooms that the tests go over: one value, uneven ones, and more rows than one block of the device scans.
inline const std::vector<RaggedCapacity>& rooms() {
    static const std::vector<RaggedCapacity> all{{1, 1}, {7, 40}, {50, 300}, {300, 2500}};
    return all;
}
inline constexpr RaggedCapacity many_rows{40000, 90000};

} // namespace sluice::test::reshape_case

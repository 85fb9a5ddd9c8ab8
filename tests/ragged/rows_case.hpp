// What the tests of row operations share: batches with rows of every length that is treated differently, and results that
// are poisoned, read back and compared with plain loops.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <sluice/graph/capture.hpp>
#include <sluice/ragged/packer.hpp>
#if defined(SLUICE_TEST_CUDA)
#include <sluice/ragged/rows.cuh>
#else
#include <sluice/ragged/rows.hpp>
#endif

#include "ragged/random_rows.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/random_values.hpp"
#include "support/sanitized.hpp"

namespace sluice::test::rows_case {

using B = TestBackend;
using Ref = BasicStreamRef<B>;

inline constexpr RaggedCapacity room{3000, 60000};
/// Kinds of batches that `mixed_rows` makes in turns.
inline constexpr std::uint64_t kinds = 7;

/// Lengths of rows that fit `room`.
inline std::vector<std::size_t> mixed_lengths(CountedRandom& random, std::uint64_t kind) {
    const auto most_rows = static_cast<std::uint32_t>(room.rows);
    const auto most_values = static_cast<std::uint32_t>(room.values);
    const auto below = [&](std::uint32_t bound) { return static_cast<std::size_t>(random.below(bound)); };
    std::vector<std::size_t> lengths;
    std::size_t left = most_values;
    const auto add = [&](std::size_t length) {
        length = length < left ? length : left;
        lengths.push_back(length);
        left -= length;
    };
    switch (kind) {
    case 0: // short ones
        for (std::size_t rows = most_rows - below(100); lengths.size() < rows;)
            add(below(17));
        break;
    case 1: // a group of lanes each, with some on either side
        for (std::size_t rows = below(400); lengths.size() < rows;)
            add(below(3) == 0 ? 20 + below(10) : below(300));
        break;
    case 2: // up to longer than a tile
        while (left > 0)
            add(below(12000));
        break;
    case 3: // one row with everything, among empty ones
        lengths.assign(1 + below(most_rows), 0);
        lengths[below(static_cast<std::uint32_t>(lengths.size()))] = most_values;
        break;
    case 4: // short ones, and a long one at times
        for (std::size_t rows = below(most_rows); lengths.size() < rows;)
            add(below(200) == 0 ? below(9000) : below(9));
        break;
    case 5: // empty ones, or none
        lengths.assign(below(2) == 0 ? 0 : most_rows, 0);
        break;
    default: // all of one length, a power of two at times
        for (const std::size_t length = below(2) == 0 ? std::size_t{1} << below(13) : 1 + below(700);
             left >= length && lengths.size() < most_rows;)
            add(length);
        break;
    }
    return lengths;
}

/// Rows of what `value(random)` makes.
template <class Value>
auto mixed_rows(std::uint64_t sample, Value value) {
    CountedRandom random(RandomKey{.seed = 21, .sample = sample});
    Lists<decltype(value(random))> rows;
    for (const std::size_t length : mixed_lengths(random, sample % kinds)) {
        rows.emplace_back();
        rows.back().reserve(length);
        for (std::size_t i = 0; i < length; ++i)
            rows.back().push_back(value(random));
    }
    return rows;
}
/// Values of both signs, some of them equal.
inline float some_float(CountedRandom& random) {
    return random.below(8) == 0 ? static_cast<float>(random.below(5)) - 2.0f : 8.0f * random.uniform() - 4.0f;
}

/// A batch to read from. It begins as poison, NaN in floating point: kernels that read 16 bytes at a time also read, and must not
/// use, what is beside a row.
template <class T>
struct Operand {
    explicit Operand(Ref stream, RaggedCapacity capacity = room) : packer(capacity), batch(capacity, stream) {
        fill_bytes(stream, batch.values(), 0xff);
    }
    void load(Ref stream, const Lists<T>& rows) {
        packer.pack(rows);
        packer.copy_to(stream, batch);
    }
    RaggedPacker<T, B> packer;
    RaggedBatch<T, B> batch;
};

/// Memory to write to. It begins as poison: `read` copies all of it, and initcheck reports copies of what nothing wrote.
template <class T>
struct Result {
    Result(Ref stream, std::int64_t count) : memory(static_cast<std::size_t>(count), stream) {
        poison(stream);
    }
    void poison(Ref stream) { fill_bytes(stream, memory, 0xee); }
    std::vector<T> read(Ref stream) const {
        std::vector<T> values(memory.size());
        copy_and_wait(stream, values, memory.span());
        return values;
    }
    DeviceBuffer<T, B> memory;
};

/// Whether all from `count` on is still poison.
template <class T>
bool untouched(const std::vector<T>& values, std::size_t count) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t i = count * sizeof(T); i < values.size() * sizeof(T); ++i) {
        if (bytes[i] != 0xee)
            return false;
    }
    return true;
}

/// Whether `got` is `expected`, up to `tolerance` of what the terms add up to; equal infinities and NaN are equal.
inline bool close(double got, double expected, double terms, double tolerance = 1e-6) {
    if (std::isnan(expected) || std::isinf(expected))
        return std::isnan(expected) ? std::isnan(got) : got == expected;
    return std::abs(got - expected) <= tolerance * (terms + 1e-3);
}

/// Runs `Case`, which has `load(stream, sample)`, `poison(stream)`, `enqueue(stream)` and `check(stream)`: enqueued, and
/// then replayed from a graph that was captured without rows.
template <class Case>
void drive(std::uint64_t samples) {
    const BasicStream<B> stream;
    Case tested(stream);
    const BasicGraph<B> graph = capture(stream, [&](Ref capturing) { tested.enqueue(capturing); });
    const BasicGraphExec<B> executable(graph);
    if (sanitized) // each kind once
        samples = (std::min)(samples, kinds);
    for (const bool replayed : {false, true}) {
        CAPTURE(replayed);
        for (std::uint64_t sample = 0; sample < samples; ++sample) {
            CAPTURE(sample);
            tested.load(stream, sample + (replayed ? samples : 0));
            tested.poison(stream);
            if (replayed) {
                executable.launch(stream);
            } else {
                tested.enqueue(stream);
            }
            tested.check(stream);
        }
    }
}

} // namespace sluice::test::rows_case

// Reductions of rows of unusual values, from any place in memory, in any batch, and into too little room.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ragged/rows_case.hpp"

namespace ragged_rows_reduce_edges {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::rows_case;

TEST_CASE("NaN and infinities are not hidden") {
    const BasicStream<B> stream;
    const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
    // Once short, and once as long as what a warp, and a block, is given.
    for (const std::size_t length :
         {std::size_t{5}, std::size_t{100}, std::size_t{1000}, std::size_t{9000}}) {
        CAPTURE(length);
        Lists<float> rows(6, std::vector<float>(length, 1.0f));
        rows[0][3] = nan;
        rows[0][4] = inf;
        rows[1][4] = inf;
        rows[1][2] = -inf;
        rows[2].assign(length, -inf);
        rows[3].assign(length, inf);
        rows[4][length - 1] = nan;
        Operand<float> in(stream);
        Result<float> maxima(stream, room.rows), minima(stream, room.rows), logs(stream, room.rows);
        Result<std::int64_t> places(stream, room.rows);
        in.load(stream, rows);
        ragged::max(stream, maxima.memory, in.batch);
        ragged::min(stream, minima.memory, in.batch);
        ragged::argmax(stream, places.memory, in.batch);
        ragged::logsumexp(stream, logs.memory, in.batch);
        const auto max = maxima.read(stream), min = minima.read(stream), log = logs.read(stream);
        const auto place = places.read(stream);
        CHECK((std::isnan(max[0]) && std::isnan(min[0]) && std::isnan(log[0])));
        CHECK((std::isnan(max[4]) && std::isnan(min[4]) && std::isnan(log[4])));
        CHECK((max[1] == inf && min[1] == -inf && log[1] == inf));
        CHECK((max[2] == -inf && min[2] == -inf && log[2] == -inf));
        CHECK((max[3] == inf && min[3] == inf && log[3] == inf));
        CHECK(max[5] == 1.0f);
        CHECK(std::vector<std::int64_t>(place.begin(), place.begin() + 6) ==
              std::vector<std::int64_t>{3, 4, 0, 0, static_cast<std::int64_t>(length) - 1, 0});
    }
}

TEST_CASE("a stream is taken in whatever form it is at hand") {
    const BasicStream<B> stream;
    Operand<float> in(stream);
    in.load(stream, {{1.0f, 2.0f}, {}, {4.0f}});
    const std::vector<float> sums{3.0f, 0.0f, 4.0f};
    const auto check = [&](const auto& form) {
        Result<float> result(stream, room.rows);
        ragged::sum(form, result.memory, in.batch);
        const auto read = result.read(stream);
        CHECK(std::vector<float>(read.begin(), read.begin() + 3) == sums);
    };
    check(stream);
    check(stream.ref());
    check(stream.get());
#if defined(SLUICE_TEST_HAS_CCCL_STREAM_REF) && SLUICE_TEST_HAS_CCCL_STREAM_REF
    check(cuda::stream_ref{stream.get()});
#endif
}

namespace {

// Sums and maxima of rows whose values, and nothing beyond them, are `T`s from any place in memory on.
template <class T>
void check_places_in_memory() {
    const BasicStream<B> stream;
    for (std::int64_t place = 0; place < static_cast<std::int64_t>(16 / sizeof(T)); ++place) {
        CAPTURE(place);
        CountedRandom random(RandomKey{.seed = 8, .sample = static_cast<std::uint64_t>(place)});
        Lists<T> rows;
        std::vector<T> memory(static_cast<std::size_t>(place), T(100));
        for (std::size_t r = 0; r < 200; ++r) {
            rows.emplace_back(random.below(26));
            for (T& value : rows.back()) {
                value = static_cast<T>(random.below(50));
                memory.push_back(value);
            }
        }
        const auto values = static_cast<std::int64_t>(memory.size()) - place;
        Operand<T> shape(stream, {200, values});
        shape.load(stream, rows);
        DeviceBuffer<T, B> exactly(memory.size(), stream);
        copy_and_wait(stream, exactly, memory);
        const RaggedView<const T> view =
            std::as_const(shape.batch).view().over(static_cast<const T*>(exactly.data()) + place);
        Result<std::int64_t> sums(stream, 200);
        Result<T> maxima(stream, 200);
        sums.poison(stream);
        maxima.poison(stream);
        ragged::sum(stream, sums.memory, view);
        ragged::max(stream, maxima.memory, view);
        const auto got_sums = sums.read(stream);
        const auto got_maxima = maxima.read(stream);
        for (std::size_t r = 0; r < rows.size(); ++r) {
            std::int64_t sum = 0;
            T greatest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                              : std::numeric_limits<T>::lowest();
            for (const T value : rows[r]) {
                sum += static_cast<std::int64_t>(value);
                greatest = std::max(greatest, value);
            }
            CHECK(got_sums[r] == sum);
            CHECK(got_maxima[r] == greatest);
        }
    }
}

} // namespace

TEST_CASE("values may start anywhere in memory") {
    check_places_in_memory<float>();
    check_places_in_memory<double>();
    check_places_in_memory<std::uint8_t>();
}

TEST_CASE("a row's sum has the same bits in every batch and every run") {
    const BasicStream<B> stream;
    Lists<float> chosen;
    for (const std::size_t length : {3u, 24u, 25u, 200u, 256u, 257u, 1024u, 1025u, 7000u, 17000u}) {
        CountedRandom random(RandomKey{.seed = 5, .sample = length});
        chosen.emplace_back();
        for (std::size_t i = 0; i < length; ++i)
            chosen.back().push_back(some_float(random));
    }
    RaggedWorkspace<B> workspace(room, stream);
    std::vector<float> first, first_shared;
    for (std::uint64_t sample = 0; sample < 4 * kinds; ++sample) {
        CountedRandom random(RandomKey{.seed = 6, .sample = sample});
        Lists<float> rows = mixed_rows(sample, some_float);
        rows.resize(std::min<std::size_t>(rows.size(), 300));
        std::size_t values = 0;
        for (std::vector<float>& row : rows) { // leaves room
            row.resize(std::min<std::size_t>(row.size(), 30000 - values));
            values += row.size();
        }
        const std::size_t at = random.below(static_cast<std::uint32_t>(rows.size()) + 1);
        rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(at), chosen.begin(), chosen.end());
        Operand<float> in(stream);
        Result<float> sums(stream, room.rows);
        in.load(stream, rows);
        const auto look = [&](std::vector<float>& before) {
            const auto all = sums.read(stream);
            const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at);
            const std::vector<float> sum(begin, begin + static_cast<std::ptrdiff_t>(chosen.size()));
            if (before.empty())
                before = sum;
            CHECK(same_bytes(sum, before));
        };
        ragged::sum(stream, sums.memory, in.batch);
        look(first);
        ragged::sum(stream, sums.memory, in.batch, &workspace);
        look(first_shared);
    }
}

TEST_CASE("a result with too little room is refused") {
    const BasicStream<B> stream;
    const RaggedBatch<float, B> batch({10, 100}, stream);
    DeviceBuffer<float, B> out(9, stream);
    const std::string text = text_of([&] { ragged::sum(stream, out, batch); });
    CHECK(contains(text, "ragged::sum"));
    CHECK(contains(text, "9 elements"));
    CHECK(contains(text, "at least 10"));
}

TEST_CASE("a result in the memory of the values is refused") {
    const BasicStream<B> stream;
    RaggedBatch<std::int64_t, B> batch({10, 100}, stream);
    CHECK(text_of([&] { ragged::sum(stream, batch.values(), batch); }) ==
          "ragged::sum: the result and the rows' values overlap, expected other memory for the result");
    CHECK(contains(text_of([&] { ragged::argmax(stream, batch.values().last(10), batch); }),
                   "ragged::argmax: the result and the rows' values overlap"));
}

TEST_CASE("a workspace with too little room is refused") {
    const BasicStream<B> stream;
    const RaggedBatch<float, B> batch({10, 100}, stream);
    DeviceBuffer<float, B> out(10, stream);
    RaggedWorkspace<B> workspace({1, 1}, stream);
    const RaggedView<const float> few = batch.view();
    // Nothing looks at the values that it says are there.
    const RaggedView<const float> many(few.values(), few.offsets(), few.counts_pointer(), 10,
                                       std::int64_t{1} << 28);
    CHECK(contains(text_of([&] { ragged::sum(stream, out, many, &workspace); }), "too small"));
    CHECK(contains(text_of([&] { ragged::logsumexp(stream, out, many, &workspace); }), "too small"));
    CHECK(contains(text_of([&] { ragged::sum(stream, out, few, &workspace); }),
                   "was made for 1 row and 1 value"));
    RaggedWorkspace<B> enough({10, 100}, stream);
    ragged::sum(stream, out, few, &enough);
    stream.sync();
    // Of so few values nothing would use it.
    const RaggedWorkspace<B> taken = std::move(enough);
    CHECK(text_of([&] { ragged::sum(stream, out, few, &enough); }) == moved_from("ragged workspace"));
    DeviceBuffer<float, B> values(100, stream);
    CHECK(text_of([&] { ragged::softmax(stream, values, few, &enough); }) == moved_from("ragged workspace"));
}

} // namespace ragged_rows_reduce_edges

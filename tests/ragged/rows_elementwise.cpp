// Functions of each value of ragged rows.
#include <algorithm>

#include "ragged/rows_case.hpp"

namespace ragged_rows_elementwise {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::rows_case;

namespace {

constexpr std::int64_t width = 300;

struct Square {
    SLUICE_HOST_DEVICE double operator()(float a) const { return static_cast<double>(a) * a; }
};
struct Difference {
    SLUICE_HOST_DEVICE float operator()(float a, float b) const { return a - 2.0f * b; }
};
struct Narrow {
    SLUICE_HOST_DEVICE float operator()(double a) const { return static_cast<float>(a); }
};
struct Twice {
    SLUICE_HOST_DEVICE std::int64_t operator()(std::int64_t a) const { return 2 * a; }
};
struct Sum {
    SLUICE_HOST_DEVICE std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a + b; }
};
struct Where {
    SLUICE_HOST_DEVICE std::int64_t operator()(std::int64_t row, std::int64_t position,
                                               std::int64_t i) const {
        return (row * 1000000 + position) * 100000 + i;
    }
};

struct Functions {
    explicit Functions(Ref stream)
        : in(stream), other(stream), squares(stream, room.values), differences(stream, room.values),
          by_row(stream, room.values), padded_out(stream, room.values), places(stream, room.values),
          refused(stream, 1), dense(static_cast<std::size_t>(room.rows), stream),
          padded(static_cast<std::size_t>(room.rows * width), stream) {
        for (std::int64_t i = 0; i < room.rows; ++i)
            dense_values.push_back(static_cast<float>(i % 1999) * 0.5f);
        CountedRandom random(RandomKey{.seed = 8});
        for (std::int64_t i = 0; i < room.rows * width; ++i)
            padded_values.push_back(random.uniform());
        copy_and_wait(stream, dense, dense_values);
        copy_and_wait(stream, padded, padded_values);
    }

    void load(Ref stream, std::uint64_t sample) {
        rows = mixed_rows(sample, some_float);
        others = rows;
        for (std::vector<float>& row : others) {
            for (float& value : row)
                value = value * value + 1.0f;
        }
        in.load(stream, rows);
        other.load(stream, others);
    }
    void poison(Ref stream) {
        squares.poison(stream);
        differences.poison(stream);
        by_row.poison(stream);
        padded_out.poison(stream);
        places.poison(stream);
        refused.poison(stream);
    }
    void enqueue(Ref stream) {
        ragged::apply(stream, Square{}, squares.memory, in.batch);
        ragged::apply(stream, Difference{}, differences.memory, in.batch, other.batch);
        ragged::apply_by_row(stream, Difference{}, by_row.memory, in.batch, dense);
        ragged::apply_padded(stream, Difference{}, padded_out.memory, in.batch, padded, width,
                             refused.memory.span());
        ragged::generate(stream, Where{}, places.memory, in.batch);
    }
    void check(Ref stream) {
        std::vector<double> square;
        std::vector<float> difference, of_row, of_padded;
        std::vector<std::int64_t> place;
        std::int64_t longest = 0;
        for (std::size_t r = 0; r < rows.size(); ++r) {
            longest = std::max(longest, static_cast<std::int64_t>(rows[r].size()));
            for (std::size_t p = 0; p < rows[r].size(); ++p) {
                const float value = rows[r][p];
                square.push_back(Square{}(value));
                difference.push_back(Difference{}(value, others[r][p]));
                of_row.push_back(Difference{}(value, dense_values[r]));
                const auto r64 = static_cast<std::int64_t>(r), p64 = static_cast<std::int64_t>(p);
                place.push_back(Where{}(r64, p64, static_cast<std::int64_t>(place.size())));
                if (p64 < width)
                    of_padded.push_back(
                        Difference{}(value, padded_values[r * static_cast<std::size_t>(width) + p]));
            }
        }
        const auto begins_with = [](const auto& got, const auto& expected) {
            return std::equal(expected.begin(), expected.end(), got.begin()) &&
                   untouched(got, expected.size());
        };
        CHECK(begins_with(squares.read(stream), square));
        // A device multiplies and adds in one rounding.
        const auto near = [](const auto& got, const auto& expected) {
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < expected.size(); ++i)
                wrong += close(got[i], expected[i], 3000.0, 1e-7) ? 0u : 1u;
            return wrong == 0 && untouched(got, expected.size());
        };
        CHECK(near(differences.read(stream), difference));
        CHECK(near(by_row.read(stream), of_row));
        CHECK(begins_with(places.read(stream), place));
        const bool fits = longest <= width;
        CHECK(refused.read(stream) == std::vector<std::int64_t>{fits ? 0 : longest});
        CHECK(near(padded_out.read(stream), fits ? of_padded : std::vector<float>{}));
    }

    Operand<float> in, other;
    Result<double> squares;
    Result<float> differences, by_row, padded_out;
    Result<std::int64_t> places, refused;
    DeviceBuffer<float, B> dense, padded;
    std::vector<float> dense_values, padded_values;
    Lists<float> rows, others;
};

} // namespace

TEST_CASE("functions of each value are those of plain loops") { drive<Functions>(3 * kinds); }

TEST_CASE("operands with too little room are refused") {
    const BasicStream<B> stream;
    const RaggedBatch<float, B> batch({10, 100}, stream), fewer({10, 99}, stream);
    DeviceBuffer<float, B> out(100, stream), nine(9, stream);
    CHECK(contains(text_of([&] { ragged::apply(stream, Difference{}, out, batch, fewer); }), "at least 100"));
    CHECK(contains(text_of([&] { ragged::apply_by_row(stream, Difference{}, out, batch, nine); }),
                   "at least 10"));
    CHECK(contains(text_of([&] { ragged::apply_padded(stream, Difference{}, out, batch, out, 11); }),
                   "at least 10 rows of 11"));
    CHECK(contains(text_of([&] { ragged::apply_padded(stream, Difference{}, out, batch, out, -1); }),
                   "width is -1"));
    DeviceBuffer<float, B> none(0, stream);
    CHECK(text_of([&] { ragged::apply_padded(stream, Difference{}, out, batch, none, 0); }).empty());
}

TEST_CASE("results over a dense or a padded operand, which other values are still made of, are refused") {
    const BasicStream<B> stream;
    RaggedBatch<float, B> batch({10, 100}, stream);
    DeviceBuffer<float, B> out(150, stream), ten(10, stream);
    CHECK(text_of([&] { ragged::apply_by_row(stream, Difference{}, out, batch, out); }) ==
          "ragged::apply_by_row: the result and the dense operand overlap, expected other memory for the "
          "result");
    CHECK(contains(
        text_of([&] { ragged::apply_padded(stream, Difference{}, batch, batch, batch.values(), 10); }),
        "the result and the padded operand overlap"));
    // Side by side they share nothing.
    const auto behind = out.span().subspan(100, 10);
    const auto before = out.span().first(100);
    CHECK(text_of([&] { ragged::apply_by_row(stream, Difference{}, before, batch, behind); }).empty());
    CHECK(contains(text_of([&] {
                       ragged::apply_by_row(stream, Difference{}, before, batch, out.span().subspan(99, 10));
                   }),
                   "overlap"));
    CHECK(contains(text_of([&] {
                       ragged::apply_by_row(stream, Difference{}, out.span().subspan(9, 100), batch,
                                            out.span().first(10));
                   }),
                   "overlap"));
    // Rows are read in the order in which their results are written.
    CHECK(text_of([&] { ragged::apply_by_row(stream, Difference{}, batch, batch, ten); }).empty());
    stream.sync();
}

TEST_CASE("results that overlap an operand in part are refused, and the same elements are not") {
    const BasicStream<B> stream;
    const RaggedBatch<float, B> batch({10, 100}, stream);
    DeviceBuffer<float, B> memory(150, stream), dense(10, stream), padded(100, stream);
    const RaggedView<const float> rows = batch.view().over(std::as_const(memory).data());
    const auto at = [&](std::size_t offset) { return memory.span().subspan(offset, 100); };
    CHECK(text_of([&] { ragged::apply(stream, Square{}, at(1), rows); }) ==
          "ragged::apply: the result and the rows' values overlap in part, expected the same elements, or "
          "other memory for the result");
    CHECK(contains(text_of([&] { ragged::apply(stream, Difference{}, at(0), batch, at(50)); }),
                   "ragged::apply: the result and the other operand overlap in part"));
    CHECK(contains(text_of([&] { ragged::apply(stream, Difference{}, at(9), rows, batch); }),
                   "overlap in part"));
    CHECK(contains(text_of([&] { ragged::apply_by_row(stream, Difference{}, at(9), rows, dense); }),
                   "ragged::apply_by_row: the result and the rows' values overlap in part"));
    CHECK(contains(text_of([&] { ragged::apply_padded(stream, Difference{}, at(9), rows, padded, 10); }),
                   "ragged::apply_padded: the result and the rows' values overlap in part"));
    CHECK(text_of([&] { ragged::apply(stream, Square{}, at(0), rows); }).empty());
    CHECK(text_of([&] { ragged::apply(stream, Difference{}, at(0), rows, at(0)); }).empty());
    CHECK(text_of([&] { ragged::apply(stream, Difference{}, at(0), batch, at(0)); }).empty());
    stream.sync();

    // Elements of another size are others, though the first ones begin at one place.
    DeviceBuffer<double, B> wide(100, stream);
    const DeviceSpan<float, B> narrow(reinterpret_cast<float*>(wide.data()), 100);
    const RaggedView<const double> wide_rows = batch.view().over(std::as_const(wide).data());
    CHECK(contains(text_of([&] { ragged::apply(stream, Narrow{}, narrow, wide_rows); }), "overlap in part"));
}

TEST_CASE("a result where the rows' shape or another result is, is refused") {
    const BasicStream<B> stream;
    const RaggedBatch<std::int64_t, B> batch({10, 100}, stream);
    DeviceBuffer<std::int64_t, B> offsets(120, stream), padded(100, stream), out(100, stream),
        wide(100, stream);
    const RaggedView<const std::int64_t> own = batch.view();
    const RaggedView<const std::int64_t> rows(own.values(), offsets.data(), own.counts_pointer(), 10, 100);
    const auto over_offsets = offsets.span().subspan(10, 100);
    CHECK(text_of([&] { ragged::apply(stream, Twice{}, over_offsets, rows); }) ==
          "ragged::apply: a result and the rows' offsets overlap, expected other memory for a result");
    CHECK(contains(text_of([&] { ragged::generate(stream, Where{}, over_offsets, rows); }),
                   "the rows' offsets"));
    DeviceBuffer<RaggedCounts, B> counts(1, stream);
    const RaggedView<const std::int64_t> counted(own.values(), own.offsets(), counts.data(), 10, 100);
    const DeviceSpan<std::int64_t, B> over_counts(reinterpret_cast<std::int64_t*>(counts.data()), 100);
    CHECK(contains(text_of([&] { ragged::generate(stream, Where{}, over_counts, counted); }),
                   "ragged::generate: a result and the rows' counts overlap"));
    const RaggedView<const std::int64_t> over_out = own.over(std::as_const(out).data());
    CHECK(contains(text_of([&] {
                       ragged::apply_padded(stream, Sum{}, wide, over_out, padded, 10, out.span().first(1));
                   }),
                   "refused and the rows' values overlap"));
    CHECK(
        text_of([&] { ragged::apply_padded(stream, Sum{}, out, batch, padded, 10, out.span().first(1)); }) ==
        "ragged::apply_padded: the place for what was refused and the result overlap, expected other memory "
        "for the place for what was refused");
    CHECK(contains(
        text_of([&] { ragged::apply_padded(stream, Sum{}, out, batch, padded, 10, padded.span().last(1)); }),
        "refused and the padded operand overlap"));
    stream.sync();
}

TEST_CASE("operands and results that are null pointers are refused") {
    const BasicStream<B> stream;
    const RaggedBatch<float, B> batch({10, 100}, stream);
    DeviceBuffer<float, B> out(100, stream);
    const DeviceSpan<float, B> none(nullptr, 100);
    const RaggedView<const float> no_values = batch.view().over(static_cast<const float*>(nullptr));
    CHECK(text_of([&] { ragged::apply(stream, Square{}, none, batch); }) ==
          "ragged::apply: for the result a null pointer to 100 elements was given; expected memory that "
          "holds as many");
    CHECK(contains(text_of([&] { ragged::apply(stream, Square{}, out, no_values); }),
                   "ragged::apply: for the rows' values a null pointer to 100 elements"));
    CHECK(
        contains(text_of([&] { ragged::sum(stream, out, no_values); }), "ragged::sum: for the rows' values"));
    CHECK(
        contains(text_of([&] { ragged::softmax(stream, none, batch); }), "ragged::softmax: for the result"));
    CHECK(contains(text_of([&] { ragged::apply_by_row(stream, Difference{}, out, batch, none); }),
                   "for the dense operand"));
    const DeviceSpan<std::int64_t, B> nowhere(nullptr, 100);
    CHECK(contains(text_of([&] { ragged::generate(stream, Where{}, nowhere, batch); }),
                   "ragged::generate: for a result a null pointer to 100 elements"));
    // Rows whose values nothing looks at, and no rows at all.
    DeviceBuffer<std::int64_t, B> places(100, stream);
    CHECK(text_of([&] { ragged::generate(stream, Where{}, places, no_values); }).empty());
    CHECK(contains(text_of([&] { ragged::sum(stream, out, RaggedView<const float>()); }),
                   "ragged::sum: for the rows' offsets a null pointer to 1 element"));
    stream.sync();
}

#if !defined(SLUICE_TEST_CUDA) // a kernel cannot call a function of the host's
TEST_CASE("functions that are empty are refused, and nothing is enqueued") {
    const BasicStream<B> stream;
    const RaggedBatch<float, B> batch({10, 100}, stream);
    DeviceBuffer<float, B> out(100, stream);
    const auto words = [](const char* operation) {
        return std::string("ragged::") + operation +
               ": the function is empty, or was moved from; expected a function to call";
    };
    float (*const one)(float) = nullptr;
    float (*const two)(float, float) = nullptr;
    float (*const places)(std::int64_t, std::int64_t, std::int64_t) = nullptr;
    CHECK(text_of([&] { ragged::apply(stream, one, out, batch); }) == words("apply"));
    CHECK(text_of([&] { ragged::apply(stream, two, out, batch, batch); }) == words("apply"));
    CHECK(text_of([&] { ragged::apply_by_row(stream, two, out, batch, out); }) == words("apply_by_row"));
    CHECK(text_of([&] { ragged::apply_padded(stream, two, out, batch, out, 1); }) == words("apply_padded"));
    CHECK(text_of([&] { ragged::generate(stream, places, out, batch); }) == words("generate"));
    stream.sync();
}
#endif

} // namespace ragged_rows_elementwise

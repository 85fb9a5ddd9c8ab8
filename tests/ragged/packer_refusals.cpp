// Contract 7: RaggedPacker refuses what does not fit or cannot be rows, with the numbers, and goes on.
#include <cstdint>
#include <limits>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include <sluice/ragged/column_packer.hpp>

#include "ragged/random_rows.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace ragged_packer_refusals {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Packer = RaggedPacker<int, B>;

const std::vector<int> five{1, 2, 3, 4, 5};

/// `make(number)` for each of `numbers`, made anew each time that it is looked at.
#if defined(__clang__) && __clang_major__ < 16 // which cannot compile GCC's std::views
template <class F>
struct MadeOf {
    const std::vector<int>& numbers;
    F make;
    struct Iterator {
        const MadeOf* of;
        std::size_t at;
        auto operator*() const { return of->make(of->numbers[at]); }
        Iterator& operator++() {
            ++at;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return at != other.at; }
    };
    Iterator begin() const { return {this, 0}; }
    Iterator end() const { return {this, numbers.size()}; }
};
template <class F>
MadeOf<F> made_of(const std::vector<int>& numbers, F make) {
    return {numbers, make};
}
#else
template <class F>
auto made_of(const std::vector<int>& numbers, F make) {
    return std::views::transform(numbers, make);
}
#endif

/// What `pack(packer)` is refused with. No row is held then, and the packer takes rows again.
template <class F>
std::string refusal(Packer& packer, F&& pack) {
    packer.pack(Lists<int>{{7}});
    const std::string text = text_of([&] { pack(packer); });
    CHECK(packer.rows() == 0);
    CHECK(packer.size() == 0);
    packer.pack(Lists<int>{{8}, {9}});
    CHECK(packer.lengths() == std::vector<std::int64_t>{1, 1});
    return text;
}

} // namespace

TEST_CASE("RaggedPacker: too many rows or values, with needed and available") {
    Packer packer({3, 6});
    const auto check = [&](const std::string& text, const char* needed) {
        CAPTURE(text);
        CHECK(contains(text, std::string(needed) + " are needed"));
        CHECK(contains(text, "room for 3 rows and 6 values is available"));
        CHECK_FALSE(contains(text, "give it rows that stay the same")); // it is not the range's doing
    };
    check(refusal(packer,
                  [](Packer& p) {
                      p.pack(Lists<int>{{1, 2, 3}, {4, 5, 6, 7}});
                  }),
          "2 rows and 7 values");
    check(refusal(packer, [](Packer& p) { p.pack(Lists<int>(4)); }), "4 rows and 0 values");
    check(refusal(packer, [](Packer& p) { p.pack(five, std::vector{5, 0, 0, 0}); }), "4 rows and 5 values");
    check(refusal(packer,
                  [](Packer& p) {
                      p.pack_offsets(five, std::vector{0, 5, 5, 5, 5, 5});
                  }),
          "5 rows and 5 values");
    check(refusal(packer,
                  [](Packer& p) {
                      p.pack_row_ids(five, std::vector{0, 0, 0, 0, 0}, 100);
                  }),
          "100 rows and 5 values");
    const std::vector<int> padded(12);
    check(refusal(packer,
                  [&](Packer& p) {
                      p.pack_padded(padded, 4, std::vector{4, 4, 4});
                  }),
          "3 rows and 12 values");
    check(refusal(packer, [&](Packer& p) { p.pack_masked(padded, 3, std::vector<char>(12)); }),
          "4 rows and 0 values");

    // A row that does not fit leaves those before it.
    packer.pack(Lists<int>{{1, 2}, {3}});
    check(text_of([&] { packer.add_row(std::vector{4, 5, 6, 7}); }), "3 rows and 7 values");
    CHECK(packer.rows() == 2);
    packer.add_row(std::vector{4, 5, 6});
    check(text_of([&] { packer.add_row({}); }), "4 rows and 6 values");
    CHECK(packer.lengths() == std::vector<std::int64_t>{2, 1, 3});
}

TEST_CASE("RaggedPacker: offsets that decrease, do not start at 0, or do not end at the values") {
    Packer packer({10, 20});
    const auto with = [&](const std::vector<std::int64_t>& offsets) {
        return refusal(packer, [&](Packer& p) { p.pack_offsets(five, offsets); });
    };
    CHECK(contains(with({0, 3, 2, 5}), "decrease from 3 to 2 at row 1"));
    CHECK(contains(with({0, -1, 5}), "decrease from 0 to -1 at row 0"));
    CHECK(contains(with({1, 3, 5}), "start at 1; expected 0"));
    CHECK(contains(with({-1, 3, 5}), "start at -1; expected 0"));
    CHECK(contains(with({0, 3, 6}), "end at 6 and there are 5 values"));
    CHECK(contains(with({0, 3, 4}), "end at 4 and there are 5 values"));
    CHECK(contains(with({}), "no offsets"));
    CHECK(contains(with({0, std::int64_t{1} << 40}), "end at 1099511627776"));
}

TEST_CASE("RaggedPacker: lengths below 0, or of another sum") {
    Packer packer({10, 20});
    const auto with = [&](const std::vector<std::int64_t>& lengths) {
        return refusal(packer, [&](Packer& p) { p.pack(five, lengths); });
    };
    CHECK(contains(with({2, -1, 4}), "row 1 has a length of -1"));
    CHECK(contains(with({2, 2}), "add up to 4 and there are 5 values"));
    CHECK(contains(with({2, 2, 2}), "more than the 5 values, from row 2 on"));
    // Sums that would overflow come no further.
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    CHECK(contains(with({most, most, 7}), "more than the 5 values, from row 0 on"));
}

TEST_CASE("RaggedPacker: row ids out of order, or of no row") {
    Packer packer({10, 20});
    const auto with = [&](const std::vector<int>& ids, std::int64_t rows) {
        return refusal(packer, [&](Packer& p) { p.pack_row_ids(five, ids, rows); });
    };
    CHECK(contains(with({0, 1, 1, 0, 2}, 3), "decrease from 1 to 0 at value 3"));
    CHECK(contains(with({0, 1, 1, 2, 3}, 3), "value 4 is in row 3, of 3 rows"));
    CHECK(contains(with({-1, 1, 1, 2, 2}, 3), "value 0 is in row -1"));
    CHECK(contains(with({0, 1}, 3), "2 row ids and 5 values"));
    CHECK(contains(text_of([&] { packer.pack_row_ids({}, std::vector<int>{}, -1); }), "-1 rows"));
}

TEST_CASE("RaggedPacker: unsigned numbers that 64 bits with a sign do not hold are named as they are") {
    Packer packer({10, 20});
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    const auto with = [&](const auto& pack) { return refusal(packer, pack); };
    CHECK(contains(with([&](Packer& p) {
                       p.pack_row_ids(five, std::vector<std::uint64_t>{0, 0, 0, 0, most}, 3);
                   }),
                   "value 4 is in row 18446744073709551615, of 3 rows"));
    CHECK(contains(with([&](Packer& p) {
                       p.pack(five, std::vector<std::uint64_t>{2, most});
                   }),
                   "more than the 5 values, from row 1 on"));
    CHECK(contains(with([&](Packer& p) {
                       p.pack_offsets(five, std::vector<std::uint64_t>{0, most, 5});
                   }),
                   "decrease from 18446744073709551615 to 5 at row 1"));
    CHECK(contains(with([&](Packer& p) {
                       p.pack_offsets(five, std::vector<std::uint64_t>{0, most});
                   }),
                   "end at 18446744073709551615 and there are 5 values"));
    CHECK(contains(with([&](Packer& p) { p.pack_padded(five, 5, std::vector<std::uint64_t>{most}); }),
                   "length of 18446744073709551615; expected 0 to the width, 5"));
}

TEST_CASE("RaggedPacker: padded arrays of other sizes, and rows longer than their width") {
    Packer packer({10, 20});
    const std::vector<int> six(6);
    const auto with = [&](std::int64_t width, const std::vector<int>& lengths) {
        return refusal(packer, [&](Packer& p) { p.pack_padded(six, width, lengths); });
    };
    CHECK(contains(with(3, {3, 4}), "row 1 has a length of 4; expected 0 to the width, 3"));
    CHECK(contains(with(3, {-1, 0}), "row 0 has a length of -1"));
    CHECK(contains(with(4, {1, 1}), "holds 6 values; expected 2 rows of 4"));
    CHECK(contains(with(0, {0, 0}), "expected 2 rows of 0"));
    CHECK(contains(with(-3, {0, 0}), "expected 2 rows of -3"));
    const auto refused = [&](std::span<const int> values, std::int64_t width, std::size_t rows) {
        return refusal(packer, [&](Packer& p) { p.pack_padded(values, width, std::vector<int>(rows, 0)); });
    };
    CHECK(contains(refused({}, -3, 0), "holds 0 values; expected 0 rows of -3"));
    // rows * width wraps around to the right size
    const std::vector<int> eight(8);
    CHECK(contains(refused(eight, (std::int64_t{1} << 61) + 1, 8), "holds 8 values; expected 8 rows of"));
    CHECK(contains(refused({}, std::int64_t{1} << 62, 4), "holds 0 values; expected 4 rows of"));

    const auto masked = [&](std::int64_t width, std::size_t mask) {
        return refusal(packer, [&](Packer& p) { p.pack_masked(six, width, std::vector<char>(mask, 1)); });
    };
    CHECK(contains(masked(3, 5), "mask holds 5 elements and the padded array 6"));
    CHECK(contains(masked(4, 6), "holds 6 values; expected 1 row of 4"));
    CHECK(contains(masked(0, 6), "width of 0; expected 1 or more"));
}

TEST_CASE("RaggedPacker: other capacities, other rows") {
    const BasicStream<B> stream;
    Packer packer({10, 20});
    RaggedBatch<int, B> batch({10, 24}, stream);
    const std::string text = text_of([&] { packer.copy_to(stream, batch); });
    CHECK(contains(text, "laid out for 10 rows and 20 values, the batch for 10 rows and 24 values"));
    CHECK(batch.counts_and_wait(stream) == RaggedCounts{});

    CHECK(contains(text_of([&] { (void)packer.row(0); }), "row 0 was asked for, of 0"));
    CHECK(contains(text_of([&] { (void)packer.row(-1); }), "row -1"));
    const std::string room = text_of([&] { packer.clear({1000, 1000}); });
    CHECK(contains(room, "1000 rows and 1000 values takes"));
    CHECK(packer.capacity() == RaggedCapacity{10, 20});
}

TEST_CASE(
    "RaggedPacker: a range that gives other rows when it is walked again is refused where they do not fit") {
    // The block ends where the values do, so that the sanitizer sees any write behind them.
    Packer packer({3, 6});
    const std::vector<int> samples{0, 1, 2};
    // Rows of `first` values when they are counted, and of `later` ones when they are packed, as random crops are.
    const auto with = [&](std::size_t first, std::size_t later) {
        std::size_t made = 0;
        return refusal(packer, [&](Packer& p) {
            p.pack(made_of(samples, [&](int sample) {
                return std::vector<int>(made++ < samples.size() ? first : later, sample);
            }));
        });
    };
    CHECK(contains(
        with(2, 2000),
        "the range had 3 rows and 6 values when it was counted, and gave others when they were packed: at "
        "least 1 row and 2000 values are needed, and room for 3 rows and 6 values is available"));
    CHECK(contains(with(2, 3), "at least 3 rows and 9 values are needed"));
    std::size_t made = 0;
    packer.pack(made_of(
        samples, [&](int sample) { return std::vector<int>(made++ < samples.size() ? 2 : 1, sample); }));
    CHECK(packer.lengths() == std::vector<std::int64_t>{1, 1, 1}); // what fits is taken
}

TEST_CASE("RaggedPacker: a range that throws, or has more rows the second time, leaves no rows") {
    Packer packer({3, 6});
    const std::vector<int> samples{0, 1, 2};
    int made = 0;
    CHECK(contains(refusal(packer,
                           [&](Packer& p) {
                               p.pack(made_of(samples, [&](int) {
                                   if (++made == 5)
                                       throw Error("no file");
                                   return std::vector<int>(1);
                               }));
                           }),
                   "no file"));
    // Of changing length: three rows when counted, more later.
    struct Growing {
        const int* rows;
        mutable int walks = 0;
        struct Row {
            int left;
            std::vector<int> operator*() const { return std::vector<int>(1); }
            Row& operator++() {
                --left;
                return *this;
            }
            bool operator!=(const Row&) const { return left != 0; }
        };
        Row begin() const { return {rows[walks++]}; }
        Row end() const { return {0}; }
    };
    const int rows[] = {3, 4};
    CHECK(
        contains(refusal(packer, [&](Packer& p) { p.pack(Growing{rows}); }), "at least 4 rows and 4 values"));
}

TEST_CASE("RaggedColumnPacker: rows that differ when they are packed are refused") {
    Packer packer({3, 6});
    packer.pack(Lists<int>{{1, 2}, {3}});
    RaggedColumnPacker<int, B> column(6);
    const std::vector<int> samples{0, 1};
    column.pack(packer, made_of(samples, [&](int sample) {
                    return std::vector<int>(static_cast<std::size_t>(2 - sample));
                }));
    CHECK(column.size() == 3);
    CHECK(contains(
        text_of([&] { column.pack(packer, made_of(samples, [&](int) { return std::vector<int>(600); })); }),
        "row 0 has 600 values, and the row that it shares 2"));
    CHECK(column.size() == 0);
}

TEST_CASE("a packer refuses a null pointer to values") {
    Packer packer(RaggedCapacity{4, 10});
    const std::span<const int> none(static_cast<const int*>(nullptr), 2);
    const std::vector<std::int64_t> two{2}, offsets{0, 2}, ids{0, 0};
    const std::vector<std::uint8_t> kept{1, 0};
    CHECK(text_of([&] { packer.add_row(none); }) ==
          "RaggedPacker::add_row: for the row a null pointer to 2 elements was given; expected memory that "
          "holds as "
          "many");
    CHECK(contains(refusal(packer, [&](Packer& to) { to.pack(std::vector{none}); }),
                   "for a row a null pointer"));
    for (const std::string& text : {refusal(packer, [&](Packer& to) { to.pack(none, two); }),
                                    refusal(packer, [&](Packer& to) { to.pack_offsets(none, offsets); }),
                                    refusal(packer, [&](Packer& to) { to.pack_row_ids(none, ids, 1); })})
        CHECK(contains(text, "for the values a null pointer to 2 elements was given"));
    for (const std::string& text : {refusal(packer, [&](Packer& to) { to.pack_padded(none, 2, two); }),
                                    refusal(packer, [&](Packer& to) { to.pack_masked(none, 2, kept); })})
        CHECK(contains(text, "for the padded array a null pointer to 2 elements was given"));
    packer.pack(std::vector<std::vector<int>>{{1, 2}});
    RaggedColumnPacker<int, B> column(10);
    CHECK(contains(text_of([&] { column.pack_values(packer, none); }), "for the values a null pointer"));
    CHECK(contains(text_of([&] { column.pack(packer, std::vector{none}); }), "for a row a null pointer"));
}

TEST_CASE("a packer refuses more values than any memory holds") {
    RaggedPacker<char, B> packer(RaggedCapacity{4, 10});
    const char value = 'a';
    packer.add_row({&value, 1});
    // As a number with a sign the length is below 0.
    const std::span<const char> most(&value, std::size_t{1} << 63);
    const std::string needed = "RaggedPacker: 2 rows and 9223372036854775807 values are needed, and room for "
                               "4 rows and 10 values is "
                               "available";
    CHECK(text_of([&] { packer.add_row(most); }) == needed);
    CHECK(packer.size() == 1);
    CHECK(text_of([&] { packer.pack(std::vector{most, most}); }) == needed);
    const std::vector<std::int64_t> halves{std::int64_t{1} << 62, std::int64_t{1} << 62};
    CHECK(text_of([&] { packer.pack_padded(most, std::int64_t{1} << 62, halves); }) == needed);
}

// Packing would write over such rows before they are read.
TEST_CASE("a packer refuses rows of its own, but for one more row") {
    Packer packer({4, 12});
    const auto overlap = [](const char* call, const char* what) {
        return std::string("RaggedPacker::") + call + ": " + what +
               " and the packer's own block overlap, which packing writes over; expected a copy in memory of "
               "the "
               "caller's";
    };
    CHECK(refusal(packer, [](Packer& p) {
              p.pack(Lists<int>{{1, 2, 3}, {4, 5}, {6}});
              p.pack(std::vector{p.row(2), p.row(1), p.row(0)});
          }) == overlap("pack", "a row"));
    const std::vector<std::int64_t> one{1}, offsets{0, 1}, ids{0};
    CHECK(refusal(packer, [&](Packer& p) { p.pack(p.values(), one); }) == overlap("pack", "the values"));
    CHECK(refusal(packer, [](Packer& p) { p.pack(five, p.values()); }) == overlap("pack", "the lengths"));
    CHECK(refusal(packer, [](Packer& p) { p.pack(five, p.offsets()); }) == overlap("pack", "the lengths"));
    CHECK(refusal(packer, [&](Packer& p) { p.pack_offsets(p.values(), offsets); }) ==
          overlap("pack_offsets", "the values"));
    CHECK(refusal(packer, [](Packer& p) { p.pack_offsets(five, p.offsets()); }) ==
          overlap("pack_offsets", "the offsets"));
    CHECK(refusal(packer, [&](Packer& p) { p.pack_row_ids(p.values(), ids, 1); }) ==
          overlap("pack_row_ids", "the values"));
    CHECK(refusal(packer, [](Packer& p) { p.pack_row_ids(five, p.values(), 9); }) ==
          overlap("pack_row_ids", "the row ids"));
    CHECK(refusal(packer, [&](Packer& p) { p.pack_padded(p.values(), 1, one); }) ==
          overlap("pack_padded", "the padded array"));
    CHECK(refusal(packer, [](Packer& p) { p.pack_padded(five, 5, p.values()); }) ==
          overlap("pack_padded", "the lengths"));
    CHECK(refusal(packer, [&](Packer& p) { p.pack_masked(p.values(), 1, one); }) ==
          overlap("pack_masked", "the padded array"));
    CHECK(refusal(packer, [](Packer& p) { p.pack_masked(std::span(five).first(1), 1, p.values()); }) ==
          overlap("pack_masked", "the mask"));

    packer.pack(Lists<int>{{1, 2, 3}, {4, 5}});
    packer.add_row(packer.row(1));
    packer.add_row(packer.values().first(4));
    CHECK(std::vector(packer.values().begin(), packer.values().end()) ==
          std::vector{1, 2, 3, 4, 5, 4, 5, 1, 2, 3, 4});
    const std::span<const int> former = packer.row(1);
    packer.clear();
    CHECK(text_of([&] { packer.add_row(former); }) == overlap("add_row", "the row"));
    CHECK(packer.rows() == 0);

    packer.pack(Lists<int>{{1, 2}, {3}});
    RaggedColumnPacker<int, B> column(12);
    column.pack_values(packer, packer.values());
    const std::span<const int> own = column.values();
    const auto in_column = [&](auto&& pack, const std::string& what) {
        CHECK(text_of(pack) ==
              "RaggedColumnPacker: " + what +
                  " and the packer's own block overlap, which packing writes over; expected a copy "
                  "in memory of the caller's");
        CHECK(column.size() == 0);
    };
    in_column([&] { column.pack(packer, std::vector{own.last(2), own.first(1)}); }, "a row");
    in_column([&] { column.pack_values(packer, own); }, "the values");
}

} // namespace ragged_packer_refusals

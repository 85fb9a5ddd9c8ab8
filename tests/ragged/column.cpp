// Several values over one shape: columns have the rows of a batch, and nothing else is taken for one.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sluice/ragged/column_packer.hpp>

#include "ragged/ragged_ops.hpp"
#include "ragged/random_rows.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace ragged_column {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
constexpr RaggedCapacity capacity{20, 100};

} // namespace

TEST_CASE("RaggedColumn: values of its own over the rows of a batch") {
    const BasicStream<B> stream;
    RaggedPacker<double, B> packer(capacity);
    RaggedColumnPacker<Number, B> labels(100);
    RaggedBatch<double, B> batch(capacity, stream);
    RaggedColumn<Number, B> column(100, stream);
    DeviceBuffer<Number, B> sums(20, stream);
    DeviceBuffer<std::int64_t, B> rows_of(100, stream);
    for (std::uint64_t sample = 0; sample < 80; ++sample) {
        CAPTURE(sample);
        const Lists<Number> rows = random_rows(capacity, sample);
        Lists<double> boxes;
        for (const auto& row : rows)
            boxes.emplace_back(row.begin(), row.end());
        packer.pack(boxes);
        if (sample % 2 == 0) {
            labels.pack(packer, rows);
        } else {
            labels.pack_values(packer, std::span<const Number>(joined(rows)));
        }
        packer.copy_to(stream, batch);
        fill_bytes(stream, column.values(), 0xee);
        fill_bytes(stream, sums, 0xee);
        labels.copy_to(stream, column);
        const RaggedColumn<Number, B>& seen = column;
        ops::sums_and_rows(stream.get(), seen.view_over(batch), sums.data(), rows_of.data());
        CHECK(to_lists_and_wait(stream, batch, column) == rows);
        CHECK(to_lists_and_wait(stream, batch) == boxes);
        std::vector<Number> got(20);
        std::vector<Number> want(20, 0xeeeeeeee);
        copy_and_wait(stream, got, sums);
        for (std::size_t row = 0; row < rows.size(); ++row) {
            want[row] = 0;
            for (const Number value : rows[row])
                want[row] += value;
        }
        CHECK(got == want);
    }
}

TEST_CASE("RaggedColumn: rows that differ from the batch's are refused") {
    RaggedPacker<float, B> packer({4, 10});
    RaggedColumnPacker<int, B> labels(10);
    packer.pack(Lists<float>{{1, 2}, {}, {3}});
    const auto with = [&](const Lists<int>& rows) {
        labels.pack(packer, Lists<int>{{1, 2}, {}, {3}});
        const std::string text = text_of([&] { labels.pack(packer, rows); });
        CHECK(labels.size() == (text.empty() ? 3 : 0));
        return text;
    };
    CHECK(with({{1, 2}, {}, {3}}) == "");
    CHECK(contains(with({{1, 2}, {3}, {}}), "row 1 has 1 value, and the row that it shares 0"));
    CHECK(contains(with({{1}, {}, {3}}), "row 0 has 1 value, and the row that it shares 2"));
    CHECK(contains(with({{1, 2}, {}}), "there are 2 rows, and 3 to be shared"));
    CHECK(contains(with({{1, 2}, {}, {3}, {}}), "there are 4 rows, and 3 to be shared"));
    CHECK(contains(text_of([&] { labels.pack_values(packer, std::span<const int>(std::vector<int>(4))); }),
                   "there are 4 values, and 3 in the rows"));
}

TEST_CASE("RaggedColumn: room for no values is room enough for rows without any, and less is none") {
    const BasicStream<B> stream;
    const RaggedBatch<float, B> batch({4, 0}, stream);
    const RaggedColumn<int, B> column(0, stream);
    CHECK(column.capacity() == 0);
    CHECK(to_lists_and_wait(stream, batch, column).empty());
    CHECK(contains(text_of([&] { RaggedColumn<int, B>(-1, stream); }),
                   "room for -1 values; expected 0 or more"));
    RaggedPacker<float, B> packer({4, 0});
    packer.pack(Lists<float>(3));
    RaggedColumnPacker<int, B> values(0);
    values.pack(packer, Lists<int>(3));
    CHECK(values.size() == 0);
    CHECK(text_of([] { RaggedColumnPacker<int, B>(-1); }) ==
          "a ragged column packer cannot have room for -1 values; expected 0 or more");
    CHECK(contains(text_of([] { RaggedColumnPacker<int, B>(std::int64_t{1} << 62); }),
                   "4611686018427387904 elements of 4 bytes each is larger than any memory"));
}

TEST_CASE("RaggedColumn: too little room") {
    const BasicStream<B> stream;
    RaggedPacker<float, B> packer({4, 10});
    RaggedBatch<float, B> batch({4, 10}, stream);
    packer.pack(Lists<float>{{1}});
    RaggedColumnPacker<int, B> few(9);
    CHECK(contains(text_of([&] { few.pack(packer, Lists<int>{{1}}); }), "room for 10 values, and it for 9"));
    RaggedColumnPacker<int, B> enough(10);
    enough.pack(packer, Lists<int>{{1}});
    RaggedColumn<int, B> column(9, stream);
    CHECK(contains(text_of([&] { enough.copy_to(stream, column); }),
                   "room for 10 values, and the column for 9"));
    CHECK(contains(text_of([&] { (void)column.view_over(batch); }),
                   "room for 9 values and the batch whose rows it shares for 10"));
    CHECK(contains(text_of([&] { (void)std::as_const(column).view_over(batch); }),
                   "room for 9 values and the batch whose rows it shares for 10"));
    packer.pack(Lists<float>{std::vector<float>(10)});
    packer.copy_to(stream, batch);
    CHECK(contains(text_of([&] { (void)to_lists_and_wait(stream, batch, column); }),
                   "the rows hold 10 values, and the column has room for 9"));
}

} // namespace ragged_column

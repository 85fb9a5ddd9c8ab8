// Sizes beyond 2^31 are computed in 64 bits. Nothing of that size is allocated here; large.cu does that.
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <sluice/ragged/buckets.hpp>
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/workspace.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace ragged_large {

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::int64_t billion = 1000000000;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

} // namespace

TEST_CASE("RaggedLayout: more than 2^31 rows and values") {
    const RaggedLayout layout = RaggedLayout::of({3 * billion, 5 * billion}, 16);
    CHECK(layout.offsets_at == 256);
    CHECK(layout.values_at % 256 == 0);
    CHECK(layout.values_at >= 256u + 24000000008u);
    CHECK(layout.values_at < 256u + 24000000008u + 256u);
    CHECK(layout.bytes == layout.values_at + 80000000000u);
    // As many bytes of values as 32 bits hold, and one more.
    for (const std::int64_t values :
         {std::int64_t{1} << 31, std::int64_t{1} << 32, (std::int64_t{1} << 32) + 1})
        CHECK(RaggedLayout::of({0, values}, 1).bytes == 512u + static_cast<std::uint64_t>(values));
}

TEST_CASE("RaggedLayout: sizes that no memory holds are refused, not wrapped around") {
    const auto refused = [](RaggedCapacity capacity, std::size_t bytes) {
        return contains(text_of([&] { (void)RaggedLayout::of(capacity, bytes); }), "larger than any memory");
    };
    CHECK(refused({0, most}, 4));
    CHECK(refused({0, most / 2}, 3));
    CHECK(refused({most, 0}, 1));
    CHECK(refused({most / 8, most / 8}, 16));
    CHECK_FALSE(refused({billion, billion}, 1000));
    CHECK_FALSE(text_of([] { (void)RaggedWorkspace<Host>::bytes_for({0, most}); }).empty());
}

TEST_CASE("RaggedView: places beyond 2^31 are found, and pointed at") {
    // Four rows, one of them of 3 billion values, of an array that is not there.
    const std::vector<std::int64_t> offsets{0, 5, 5, 5 + 3 * billion, 7 + 3 * billion};
    const RaggedCounts counts{4, 7 + 3 * billion, 3 * billion, 0};
    std::vector<char> memory(1);
    const RaggedView<char> rows(memory.data(), offsets.data(), &counts, 4, 4 * billion);
    CHECK(rows.size() == 3000000007);
    CHECK(rows.longest() == 3000000000);
    CHECK(rows.length(2) == 3000000000);
    CHECK(rows.row(2).size() == 3000000000);
    CHECK(rows.row(3).size() == 2);
    CHECK(rows.row_of(4) == 0);
    CHECK(rows.row_of(5) == 2);
    CHECK(rows.row_of(std::int64_t{1} << 31) == 2);
    CHECK(rows.row_of(3 * billion + 4) == 2);
    CHECK(rows.row_of(3 * billion + 5) == 3);
    CHECK(rows.row_of(3 * billion + 6) == 3);
}

TEST_CASE("offsets beyond 2^31 are checked as they are") {
    const std::vector<std::int64_t> offsets{0, 3 * billion, 3 * billion, 5 * billion};
    const std::span<const std::int64_t> all(offsets);
    CHECK(detail::require_offsets("rows", all, 5 * billion) == 3 * billion);
    // The same modulo 2^32, and yet another number.
    CHECK(contains(
        text_of([&] { (void)detail::require_offsets("rows", all, 5 * billion - (std::int64_t{1} << 32)); }),
        "end at 5000000000"));
}

} // namespace ragged_large

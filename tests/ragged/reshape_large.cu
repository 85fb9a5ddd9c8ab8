// Rows of more values than 32 bits count.
#include "ragged/reshape_case.hpp"

namespace ragged_reshape_large {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::reshape_case;

TEST_CASE("reshape: more than 2^31 values") {
    using Byte = std::uint8_t;
    const BasicStream<B> stream;
    const std::vector<std::int64_t> lengths{5, (std::int64_t{1} << 31) + 7, 0, 100};
    const std::vector<std::int64_t> offsets{0, 5, 5 + lengths[1], 5 + lengths[1], 105 + lengths[1]};
    const RaggedCapacity room{4, offsets.back()};
    const auto size = static_cast<std::size_t>(room.values);
    RaggedBatch<Byte, B> in(room, stream), out(room, stream);
    // Operations on values need a byte for four of them.
    RaggedWorkspace<B> workspace(room, stream, 1);
    DeviceBuffer<Byte, B> keep(size, stream);

    // The rows are 1 …, 2 … and 4 …, but for a value on either side of the 2^31st.
    const auto end_of_second = static_cast<std::size_t>(offsets[2]);
    const std::size_t odd[] = {(std::size_t{1} << 31) - 1, (std::size_t{1} << 31) + 2};
    fill_bytes(stream, in.values().first(5), 1);
    fill_bytes(stream, in.values().subspan(5, end_of_second - 5), 2);
    fill_bytes(stream, in.values().last(100), 4);
    for (const std::size_t place : odd)
        fill_bytes(stream, in.values().subspan(place, 1), 9);
    const std::vector<RaggedCounts> counts{{4, room.values, lengths[1], 0}};
    copy_and_wait(stream, in.block().first(sizeof(RaggedCounts)), std::as_bytes(std::span(counts)));
    copy_and_wait(stream, in.block().subspan(in.layout().offsets_at, offsets.size() * sizeof(std::int64_t)),
                  std::as_bytes(std::span(offsets)));
    in.require_valid_and_wait(stream);

    const auto at = [&](std::size_t place) {
        std::vector<Byte> value(1);
        copy_and_wait(stream, value, out.values().subspan(place, 1));
        return static_cast<int>(value[0]);
    };
    // What is left when the first `removed` values are gone.
    const auto check = [&](std::size_t removed) {
        CHECK(at(5 - removed) == 2);
        CHECK(at(odd[0] - 1 - removed) == 2);
        CHECK(at(odd[0] - removed) == 9);
        CHECK(at(odd[0] + 1 - removed) == 2);
        CHECK(at(odd[1] - removed) == 9);
        CHECK(at(end_of_second - 1 - removed) == 2);
        CHECK(at(end_of_second - removed) == 4);
        CHECK(at(size - 1 - removed) == 4);
    };

    poison(stream, out);
    ragged::slice(stream, out, in.view(), 1, 4, workspace);
    CHECK(out.counts_and_wait(stream) == RaggedCounts{3, room.values - 5, lengths[1], 0});
    CHECK(out.offsets_and_wait(stream) ==
          std::vector<std::int64_t>{0, lengths[1], lengths[1], lengths[1] + 100});
    check(5);

    poison(stream, out);
    fill_bytes(stream, keep, 0x80);
    fill_bytes(stream, keep.span().first(3), 0);
    ragged::mask(stream, out, in.view(), keep, workspace);
    CHECK(out.counts_and_wait(stream) == RaggedCounts{4, room.values - 3, lengths[1], 0});
    CHECK(out.offsets_and_wait(stream) ==
          std::vector<std::int64_t>{0, 2, 2 + lengths[1], 2 + lengths[1], 102 + lengths[1]});
    check(3);

    ragged::concatenate_within(stream, out, {in.view(), in.view()}, workspace);
    CHECK(out.counts_and_wait(stream).refused == 2 * room.values);
}

} // namespace ragged_reshape_large

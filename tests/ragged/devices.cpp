// Contract 10 for ragged rows: a stream of another device than a batch, a packer or a workspace is refused. Needs two devices.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/device.hpp>
#include <sluice/ragged.hpp>
#include <sluice/ragged/reshape.hpp>
#include <sluice/ragged/rows.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace ragged_devices {

using namespace sluice;
using namespace sluice::test;

namespace {

using Batch = RaggedBatch<float, Host>;
constexpr RaggedCapacity room{4, 16};

struct Memory {
    Batch batch{room};
    Batch out{room};
    DeviceBuffer<float, Host> sums{4};
    DeviceBuffer<std::int64_t, Host> order{16};
    RaggedWorkspace<Host> workspace{room};
};

// Made on device 1.
HostStream make_there() {
    const DeviceGuard<Host> guard(1);
    return HostStream{};
}

template <class F>
std::string refusal(F&& call) {
    const std::string text = text_of(call);
    CHECK(contains(text, "both must be the same device's"));
    return text;
}

} // namespace

TEST_CASE("Contract 10: batches and packers refuse a stream of another device before anything is enqueued") {
    REQUIRE(Host::device_count() >= 2);
    const HostStream here;
    const HostStream there = make_there();
    Batch batch(room);
    RaggedColumn<int, Host> column(room.values);
    RaggedPacker<float, Host> packer(room);
    RaggedColumnPacker<int, Host> column_packer(room.values);
    packer.add_row(std::vector{1.0f, 2.0f});
    packer.copy_to(here, batch);
    packer.clear();
    packer.add_row(std::vector{3.0f});
    CHECK(refusal([&] { packer.copy_to(there, batch); }) ==
          "RaggedPacker::copy_to: the stream belongs to device 1, the packer to device 0; both must be the "
          "same "
          "device's");
    CHECK(batch.counts_and_wait(here).values == 2);
    CHECK(
        refusal([&] { packer.mark_in_use(there); }) ==
        "RaggedPacker::mark_in_use: the stream belongs to device 1, the packer to device 0; both must be the "
        "same device's");
    CHECK(contains(refusal([&] { column_packer.copy_to(there, column); }), "the packer to device 0"));
    refusal([&] { column_packer.mark_in_use(there); });
    refusal([&] { (void)batch.counts_and_wait(there); });
    refusal([&] { (void)batch.offsets_and_wait(there); });
    refusal([&] { batch.require_valid_and_wait(there); });
    refusal([&] { (void)to_lists_and_wait(there, batch); });
    refusal([&] { batch.clear(there); });
    // A batch of another device than packer and stream.
    const DeviceGuard<Host> guard(1);
    Batch theirs(room);
    RaggedColumn<int, Host> their_column(room.values);
    CHECK(contains(refusal([&] { packer.copy_to(here, theirs); }), "the batch to device 1"));
    CHECK(contains(refusal([&] { column_packer.copy_to(here, their_column); }), "the column to device 1"));
    CHECK(to_lists_and_wait(here, batch) == std::vector<std::vector<float>>{{1, 2}});
}

TEST_CASE("Contract 10: operations on rows refuse a stream of another device") {
    REQUIRE(Host::device_count() >= 2);
    const HostStream there = make_there();
    Memory m;
    const auto view = std::as_const(m.batch).view();
    CHECK(refusal([&] { ragged::sum(there, m.sums, m.batch, nullptr); }) ==
          "ragged::sum: the stream belongs to device 1, an operand to device 0; both must be the same "
          "device's");
    // The rows alone, the result alone and the workspace alone say so, too.
    const DeviceSpan<float, Host> sums = m.sums;
    refusal([&] { ragged::sum(there, sums, m.batch, nullptr); });
    refusal([&] { ragged::sum(there, m.sums, view, nullptr); });
    refusal([&] { ragged::sum(there, sums, view, &m.workspace); });
    refusal([&] { ragged::mean(there, m.sums, view, nullptr); });
    refusal([&] { (ragged::max)(there, m.sums, view, nullptr); });
    refusal([&] { (ragged::min)(there, m.sums, view, nullptr); });
    refusal([&] { ragged::argmax(there, m.order, view, nullptr); });
    refusal([&] { ragged::logsumexp(there, m.sums, view, nullptr); });
    refusal([&] { ragged::softmax(there, m.out, view, nullptr); });
    refusal([&] { ragged::exclusive_sum(there, m.batch.values(), m.batch, nullptr); });
    refusal([&] { ragged::sort(there, m.batch.values(), view, m.workspace); });
    refusal([&] { ragged::sort_with_positions(there, m.batch.values(), m.order, view, m.workspace); });
    const auto twice = [](float x) { return 2 * x; };
    refusal([&] { ragged::apply(there, twice, m.batch.values(), m.batch); });
    refusal([&] { ragged::prefix(there, m.out, view, 1, m.workspace); });
    refusal([&] { ragged::slice(there, m.out, view, 0, 1, m.workspace); });
    refusal([&] { ragged::slice_within(there, m.out, view, 0, 1, m.workspace); });
    refusal([&] { ragged::gather(there, m.out, view, m.order, m.workspace); });
    refusal([&] { ragged::reorder(there, m.out, view, m.order, m.workspace); });
    refusal([&] { ragged::remove_empty(there, m.out, view, m.workspace); });
    refusal([&] { ragged::repeat(there, m.out, view, 1, m.workspace); });
    refusal([&] { ragged::repeat_each(there, m.out, view, m.order, m.workspace); });
    refusal([&] { ragged::concatenate_rows(there, m.out, {view, view}, m.workspace); });
    refusal([&] { ragged::concatenate_within(there, m.out, {view, view}, m.workspace); });
    refusal([&] { ragged::stack(there, m.out, {view, view}, m.workspace); });
    refusal([&] {
        ragged::order_by_length(there, m.order, view, ragged::LengthOrder::longest_first, m.workspace);
    });
    DeviceBuffer<std::uint8_t, Host> keep(16);
    refusal([&] { ragged::mask(there, m.out, view, keep, m.workspace); });
    refusal([&] { ragged::mask_rows(there, m.out, view, keep, m.workspace); });
    DeviceBuffer<float, Host> padded(16);
    refusal([&] { ragged::from_padded(there, m.out, padded, 4, m.order.first(4), m.workspace); });
    refusal([&] { ragged::from_padded_mask(there, m.out, padded, 4, keep, m.workspace); });
    // A stream of the right one is not.
    const HostStream here;
    ragged::sum(here, m.sums, m.batch, &m.workspace);
    here.sync();
}

} // namespace ragged_devices

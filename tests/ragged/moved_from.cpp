// Batches and packers that were moved from say so when their rows are used, and may be assigned to.
#include <string>
#include <utility>
#include <vector>

#include <sluice/ragged.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/self_move.hpp"

namespace ragged_moved_from {

using namespace sluice;
using namespace sluice::test;

constexpr RaggedCapacity room{4, 16};

template <class Use>
void check_refused(const char* what, Use&& use) {
    CHECK(text_of(use) == moved_from(what));
}

TEST_CASE_TEMPLATE("a ragged batch that was moved from has no rows to use", B, TestBackend) {
    const BasicStream<B> stream;
    RaggedBatch<float, B> batch(room);
    const RaggedBatch<float, B> taken = std::move(batch);
    const RaggedBatch<float, B>& constant = batch;
    RaggedPacker<float, B> packer(room);
    check_refused("ragged batch", [&] { (void)batch.view(); });
    check_refused("ragged batch", [&] { (void)constant.view(); });
    check_refused("ragged batch", [&] { (void)batch.target(); });
    check_refused("ragged batch", [&] { (void)batch.values(); });
    check_refused("ragged batch", [&] { (void)batch.offsets(); });
    check_refused("ragged batch", [&] { (void)batch.counts(); });
    check_refused("ragged batch", [&] { (void)batch.block(); });
    check_refused("ragged batch", [&] { batch.clear(stream); });
    check_refused("ragged batch", [&] { (void)batch.counts_and_wait(stream); });
    check_refused("ragged batch", [&] { packer.copy_to(stream, batch); });
    RaggedColumn<float, B> column(16);
    const RaggedColumn<float, B> taken_column = std::move(column);
    CHECK(column.capacity() == 0);
    CHECK(column.values().empty());
    CHECK(contains(text_of([&] { (void)column.view_over(taken); }), "has room for 0 values"));
    batch = RaggedBatch<float, B>(room);
    packer.copy_to(stream, batch);
    stream.sync();
}

TEST_CASE_TEMPLATE("a packer that was moved from holds nothing", B, TestBackend) {
    const BasicStream<B> stream;
    const std::vector<float> row{1, 2};
    RaggedBatch<float, B> batch(room);
    RaggedPacker<float, B> packer(room);
    packer.add_row(row);
    RaggedPacker<float, B> taken = std::move(packer);
    check_refused("ragged packer", [&] { (void)packer.rows(); });
    check_refused("ragged packer", [&] { (void)packer.offsets(); });
    check_refused("ragged packer", [&] { (void)packer.values(); });
    check_refused("ragged packer", [&] { (void)packer.view(); });
    check_refused("ragged packer", [&] { packer.add_row(row); });
    check_refused("ragged packer", [&] { packer.clear(); });
    check_refused("ragged packer", [&] { packer.pack(std::vector<std::vector<float>>{row}); });
    check_refused("ragged packer", [&] { packer.copy_to(stream, batch); });
    check_refused("ragged packer", [&] { packer.mark_in_use(stream); });
    check_refused("ragged packer", [&] { packer.clear(room); });

    RaggedColumnPacker<float, B> column(16);
    column.pack_values(taken, std::span<const float>(row));
    RaggedColumnPacker<float, B> never_packed(16);
    const RaggedColumnPacker<float, B> taken_column = std::move(column),
                                       taken_empty = std::move(never_packed);
    RaggedColumn<float, B> values(16);
    check_refused("ragged packer", [&] { (void)column.values(); });
    check_refused("ragged packer", [&] { column.pack_values(taken, std::span<const float>(row)); });
    check_refused("ragged packer", [&] { column.copy_to(stream, values); });
    check_refused("ragged packer", [&] { column.mark_in_use(stream); });
    check_refused("ragged packer", [&] { never_packed.copy_to(stream, values); });

    packer = RaggedPacker<float, B>(room);
    packer.add_row(row);
    CHECK(packer.rows() == 1);
    RaggedWorkspace<B> workspace(room);
    const RaggedWorkspace<B> taken_workspace = std::move(workspace);
    check_refused("ragged workspace", [&] { (void)workspace.scratch(); });
}

TEST_CASE_TEMPLATE("batches, packers and workspaces stay what they are when moved into themselves", B,
                   TestBackend) {
    const BasicStream<B> stream;
    RaggedBatch<float, B> batch(room);
    RaggedColumn<float, B> column(16);
    RaggedPacker<float, B> packer(room);
    RaggedColumnPacker<float, B> column_packer(16);
    RaggedWorkspace<B> workspace(room);
    const std::vector<float> values{1, 2};
    packer.add_row(values);
    column_packer.pack_values(packer, std::span<const float>(values));
    move_into_itself(batch);
    move_into_itself(column);
    move_into_itself(packer);
    move_into_itself(column_packer);
    move_into_itself(workspace);
    packer.copy_to(stream, batch);
    column_packer.copy_to(stream, column);
    CHECK(to_lists_and_wait(stream, batch) == std::vector<std::vector<float>>{values});
    CHECK(to_lists_and_wait(stream, batch, column) == std::vector<std::vector<float>>{values});
    CHECK(workspace.capacity().values == room.values);
    CHECK(workspace.bytes() > 0);
    RaggedBuckets buckets(room, room);
    move_into_itself(buckets);
    CHECK(buckets.size() > 0);
}

} // namespace ragged_moved_from

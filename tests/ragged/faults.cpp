// Contract 5: any one call of ragged batches, packers and columns fails.
#include <cstdint>
#include <vector>

#include <sluice/ragged/column_packer.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/fail_each_call.hpp"

namespace ragged_faults {

using namespace sluice;
using namespace sluice::test;

using B = Faulty<TestBackend>;
using Word = std::uint32_t;
using Rows = std::vector<std::vector<Word>>;

TEST_CASE("Contract 5: ragged rows, any one call fails: an Error, nothing leaked, usable again") {
    const Rows first{{1, 2, 3}, {}, {4}}, second{{5}, {6, 7}};
    fail_each_call<B>(
        [&] {
            constexpr RaggedCapacity capacity{4, 12};
            const BasicStream<B> stream, other;
            RaggedPacker<Word, B> packer(capacity);
            RaggedColumnPacker<Word, B> labels(capacity.values);
            RaggedBatch<Word, B> batch(capacity), ordered(capacity, stream);
            RaggedColumn<Word, B> column(capacity.values), ordered_column(capacity.values, other);
            again_after_fault([&] {
                for (const Rows& rows : {first, second}) {
                    packer.clear(capacity);
                    for (const auto& row : rows)
                        packer.add_row(row);
                    labels.pack(packer, rows);
                    packer.copy_to(stream, batch);
                    packer.mark_in_use(other);
                    labels.copy_to(stream, column);
                    labels.copy_to(other, ordered_column);
                    batch.require_valid_and_wait(stream);
                    // Not within CHECK, which would catch what is injected.
                    const Rows seen = to_lists_and_wait(stream, batch);
                    const Rows seen_labels = to_lists_and_wait(stream, batch, column);
                    CHECK(seen == rows);
                    CHECK(seen_labels == rows);
                    packer.pack(rows);
                    packer.copy_to(stream, ordered);
                    const Rows seen_ordered = to_lists_and_wait(stream, ordered);
                    CHECK(seen_ordered == rows);
                    ordered.clear(stream);
                    const RaggedCounts counts = ordered.counts_and_wait(stream);
                    CHECK(counts.rows == 0);
                }
            });
            // Whatever failed, the packer is as it says.
            packer.pack(first);
            CHECK(packer.rows() == 3);
        },
        60);
}

} // namespace ragged_faults

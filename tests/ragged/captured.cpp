// Contract 7: ragged batches in graphs. One captured graph, with a copy of fixed size, serves what fits.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <sluice/graph/graph_capture.hpp>
#include <sluice/ragged/column_packer.hpp>

#include "ragged/ragged_ops.hpp"
#include "ragged/random_rows.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace ragged_captured {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;

#if defined(SLUICE_TEST_CUDA)
constexpr std::uint64_t batches = 10000;
#else
constexpr std::uint64_t batches = 500;
#endif

constexpr RaggedCapacity capacity{96, 600};
constexpr Number untouched = 0xeeeeeeee;

/// One place on the way: what a replay reads and writes, its own while it is on its way.
struct Slot {
    explicit Slot(const BasicStream<B>& stream)
        : packer(capacity), batch(capacity, stream), sums(96, stream), rows_of(600, stream), sums_back(96),
          rows_back(600) {}

    /// Copy, sums of rows, and the results back to the host.
    void enqueue(Ref to) {
        fill_bytes(to, sums, 0xee);
        fill_bytes(to, rows_of, 0xee);
        packer.copy_to(to, batch);
        ops::sums_and_rows(to.get(), batch.view(), sums.data(), rows_of.data());
        copy(to, sums_back, sums);
        copy(to, rows_back, rows_of);
    }

    /// Whether the results are those of `expected`, by plain loops.
    bool holds_results_of(const Lists<Number>& expected) const {
        std::size_t value = 0;
        for (std::size_t row = 0; row < 96; ++row) {
            Number sum = row < expected.size() ? 0 : untouched;
            if (row < expected.size()) {
                for (const Number number : expected[row]) {
                    sum += number;
                    if (rows_back[value++] != static_cast<std::int64_t>(row))
                        return false;
                }
            }
            if (sums_back[row] != sum)
                return false;
        }
        for (; value < 600; ++value) {
            if (rows_back[value] != static_cast<std::int64_t>(0xeeeeeeeeeeeeeeee))
                return false;
        }
        return true;
    }

    RaggedPacker<Number, B> packer;
    RaggedBatch<Number, B> batch;
    DeviceBuffer<Number, B> sums;
    DeviceBuffer<std::int64_t, B> rows_of;
    PinnedBuffer<Number, B> sums_back;
    PinnedBuffer<std::int64_t, B> rows_back;
    Lists<Number> rows;
    bool on_its_way = false;
};

void load_kernels() {
#if defined(SLUICE_TEST_CUDA)
    ops::load_ragged_kernels();
#endif
}

} // namespace

TEST_CASE("ragged batches in a graph: one capture a slot, replayed over random batches") {
    load_kernels();
    const BasicStream<B> stream;
    std::array<std::unique_ptr<Slot>, 2> slots;
    for (auto& slot : slots)
        slot = std::make_unique<Slot>(stream);
    GraphCapture<int, B> graphs{{.warmup = 0}};
    std::uint64_t wrong = 0;
    std::uint64_t empty = 0;
    std::uint64_t full = 0;
    std::uint64_t single = 0;
    // Waits until the replay that reads and writes the slot has passed.
    const auto settle = [&](Slot& slot) {
        slot.packer.clear();
        if (slot.on_its_way && !slot.holds_results_of(slot.rows))
            ++wrong;
        slot.on_its_way = false;
    };
    for (std::uint64_t n = 0; n < batches; ++n) {
        Slot& slot = *slots[n % 2];
        settle(slot);
        slot.rows = random_rows(capacity, n);
        slot.packer.pack(slot.rows);
        if (slot.packer.size() == 0 && slot.packer.rows() > 0)
            ++empty;
        if (slot.packer.size() == capacity.values)
            ++full;
        if (slot.packer.longest() == capacity.values)
            ++single;
        const Replay replay = graphs.run(stream, static_cast<int>(n % 2), [&](Ref to) { slot.enqueue(to); });
        slot.packer.mark_in_use(stream);
        slot.on_its_way = true;
        CHECK(replay.replayed());
    }
    for (auto& slot : slots)
        settle(*slot);
    stream.sync();
    CHECK(wrong == 0);
    CHECK(graphs.counters().captures == 2);
    CHECK(graphs.counters().instantiations == 2);
    CHECK(graphs.counters().replays == batches);
    // The ends of the range were among them.
    CHECK(empty > 0);
    CHECK(single > 0);
    CHECK(full >= single);
    MESSAGE(batches << " batches, " << empty << " with all rows empty, " << single
                    << " with one row of everything");
}

TEST_CASE("ragged batches in a graph: the captured copy is one node, as long as the block") {
    load_kernels();
    const BasicStream<B> stream;
    RaggedPacker<Number, B> packer(capacity);
    RaggedBatch<Number, B> batch(capacity);
    packer.pack(Lists<Number>{{1}});
    {
        const BasicGraph<B> graph = capture(stream, [&](Ref to) { packer.copy_to(to, batch); });
        CHECK(graph.nodes() == 1);
        CHECK_FALSE(packer.in_use()); // nothing has run
        BasicGraphExec<B> executable(graph);
        // Captured with one value, replayed with all the room taken.
        Lists<Number> rows(96);
        rows[95].assign(600, 7);
        packer.pack(rows);
        executable.launch(stream);
        packer.mark_in_use(stream);
        CHECK(to_lists_and_wait(stream, batch) == rows);
        packer.pack(Lists<Number>{});
        executable.launch(stream);
        packer.mark_in_use(stream);
        CHECK(to_lists_and_wait(stream, batch).empty());
    }
}

TEST_CASE("ragged batches in a graph: columns are copied whole as well") {
    const BasicStream<B> stream;
    RaggedPacker<float, B> packer(capacity);
    RaggedColumnPacker<Number, B> labels(capacity.values);
    RaggedBatch<float, B> batch(capacity);
    RaggedColumn<Number, B> column(capacity.values);
    packer.pack(Lists<float>{{}});
    labels.pack(packer, Lists<Number>{{}});
    const BasicGraph<B> graph = capture(stream, [&](Ref to) {
        packer.copy_to(to, batch);
        labels.copy_to(to, column);
    });
    BasicGraphExec<B> executable(graph);
    for (std::uint64_t sample = 0; sample < 40; ++sample) {
        const Lists<Number> rows = random_rows(capacity, sample);
        Lists<float> boxes;
        for (const auto& row : rows)
            boxes.emplace_back(row.size(), 1.0f);
        packer.pack(boxes);
        labels.pack(packer, rows);
        executable.launch(stream);
        packer.mark_in_use(stream);
        labels.mark_in_use(stream);
        CHECK(to_lists_and_wait(stream, batch, column) == rows);
        CHECK(to_lists_and_wait(stream, batch) == boxes);
    }
}

TEST_CASE("ragged batches in a graph: rows made on the device, and refused there, replay by replay") {
    load_kernels();
    const BasicStream<B> stream;
    RaggedBatch<Number, B> made({4, 20}, stream);
    DeviceBuffer<std::int64_t, B> lengths(4, stream);
    DeviceBuffer<Number, B> sums(4, stream);
    DeviceBuffer<std::int64_t, B> rows_of(20, stream);
    const BasicGraph<B> graph = capture(stream, [&](Ref to) {
        fill_bytes(to, sums, 0xee);
        ops::make_rows(to.get(), made.target(), lengths.data(), 4);
        ops::sums_and_rows(to.get(), made.view(), sums.data(), rows_of.data());
    });
    BasicGraphExec<B> executable(graph);
    const auto replay = [&](const std::vector<std::int64_t>& next) {
        copy_and_wait(stream, lengths, next);
        executable.launch(stream);
        std::vector<Number> result(4);
        copy_and_wait(stream, result, sums);
        return result;
    };
    CHECK(replay({3, 0, 1, 5}) == std::vector<Number>{3, 0, 0, 10});
    // Refused: no rows, and no sums.
    CHECK(replay({3, 0, 1, 17}) == std::vector<Number>(4, untouched));
    CHECK(made.counts_and_wait(stream).refused == 21);
    CHECK(replay({20, 0, 0, 0}) == std::vector<Number>{190, 0, 0, 0});
    made.require_valid_and_wait(stream);
}

} // namespace ragged_captured

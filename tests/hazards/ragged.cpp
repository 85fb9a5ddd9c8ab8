// Operations on ragged rows. Reductions, scans and sorts on the CPU take streams of `Host` alone, which is checked in a program
// that is compiled with SLUICE_CHECKED=1.
#include <optional>
#include <vector>

#include <sluice/ragged.hpp>
#include <sluice/ragged/reshape.hpp>
#include <sluice/ragged/rows.hpp>

#include "hazards/hazards.hpp"

namespace sluice::test::hazards_ragged {

namespace {

using Rows = RaggedBatch<float, B>;
constexpr RaggedCapacity room{.rows = 4, .values = 16};

Rows named_rows(const char* name) {
    Rows rows{room};
    name_buffer(rows, name);
    return rows;
}

// Rows of which two have been copied by the stream, and are there.
struct Boxes {
    RaggedPacker<float, B> packer{room};
    Rows boxes = named_rows("boxes"), other = named_rows("other boxes"), out = named_rows("result rows"),
         second_out = named_rows("second result");
    RaggedWorkspace<B> workspace{room};
    DeviceBuffer<std::int64_t, B> indices{2};
    Device totals = named("totals", 4), sorted = named("sorted", 16);

    const World& world;

    explicit Boxes(const World& w) : world(w) {
        packer.pack(std::vector<std::vector<float>>{{1, 2}, {3}});
        packer.copy_to(w.main, boxes);
        packer.copy_to(w.main, other);
        fill_bytes(w.main, indices, 0);
        w.main.sync();
    }
    Boxes(const Boxes&) = delete;
    Boxes& operator=(const Boxes&) = delete;
    ~Boxes() {
        settle(world.main);
        settle(world.side);
    }
    void load(const World& w) { packer.copy_to(w.main, boxes); }
};

// So that nothing is freed while it is in use.
void finish(const World& w) {
    w.main.sync();
    w.side.sync();
}

} // namespace

TEST_CASE("Hazard: rows are joined on another stream than they are copied on") {
    find(race("boxes", {"copy"}, {"concatenate_rows"}), [](World& w) {
        Boxes rows(w);
        rows.load(w);
        settle(w.main);
        ragged::concatenate_rows(w.side, rows.out, {rows.other.view(), std::as_const(rows.boxes).view()},
                                 rows.workspace);
        finish(w);
    });
}

TEST_CASE("Hazard: rows are replaced while another stream gathers them") {
    find(race("boxes", {"gather"}, {"copy"}), [](World& w) {
        Boxes rows(w);
        ragged::gather(w.side, rows.out, rows.boxes.view(), rows.indices, rows.workspace);
        settle(w.side);
        rows.load(w);
        finish(w);
    });
}

TEST_CASE("Hazard: a result of rows is read on another stream") {
    find(race("result rows", {"prefix"}, {"areas"}), [](World& w) {
        Boxes rows(w);
        ragged::prefix(w.main, rows.out, rows.boxes.view(), 1, rows.workspace);
        settle(w.main);
        reads(w.side, rows.out, "areas");
        finish(w);
    });
}

TEST_CASE("Hazard: two streams use one workspace for rows") {
    find(race(nullptr, {"prefix"}, {"slice"}), [](World& w) {
        Boxes rows(w);
        ragged::prefix(w.main, rows.out, rows.boxes.view(), 1, rows.workspace);
        settle(w.main);
        ragged::slice(w.side, rows.second_out, rows.other.view(), 0, 1, rows.workspace);
        settle(w.side);
        finish(w);
    });
}

// Thrown alone: what is not refused would use the memory in fact.
TEST_CASE("Hazard: an operation on rows that have been freed is refused before it is enqueued") {
    checked::forget();
    {
        World w;
        Boxes rows(w);
        std::optional<Rows> boxes(named_rows("boxes"));
        const RaggedView<const float> view = std::as_const(*boxes).view();
        boxes.reset();
        CHECK_THROWS_AS(ragged::prefix(w.main, rows.out, view, 1, rows.workspace), Error);
        CHECK_THROWS_AS(ragged::concatenate_rows(w.main, rows.out, {rows.other.view(), view}, rows.workspace),
                        Error);
        CHECK_THROWS_AS(ragged::gather(w.main, rows.out, view, rows.indices, rows.workspace), Error);
#if SLUICE_CHECKED && !defined(SLUICE_TEST_CUDA)
        CHECK_THROWS_AS(ragged::sum(w.main, rows.totals, view), Error);
        CHECK_THROWS_AS(ragged::softmax(w.main, rows.other, view), Error);
        CHECK_THROWS_AS(ragged::sort(w.main, rows.sorted, view, rows.workspace), Error);
#endif
        for (const checked::Finding& finding : checked::findings()) {
            CHECK(finding.mistake == Mistake::use_after_free);
            CHECK(finding.buffer == "'boxes'");
        }
        CHECK(checked::findings().size() >= 3);
    }
    checked::forget();
}

TEST_CASE("Right: operations on rows, one after the other and on two streams") {
    pass([](World& w) {
        Boxes rows(w);
        for (int step = 0; step < 3; ++step) {
            w.main.wait(w.other_event);
            rows.load(w);
            ragged::prefix(w.main, rows.out, rows.boxes.view(), 1, rows.workspace);
            order(w.main, w.side, w.event);
            ragged::concatenate_rows(w.side, rows.second_out, {rows.out.view(), rows.boxes.view()},
                                     rows.workspace);
            w.other_event.record(w.side);
        }
        rows.second_out.require_valid_and_wait(w.side);
        finish(w);
    });
}

#if SLUICE_CHECKED && !defined(SLUICE_TEST_CUDA)
TEST_CASE("Hazard: rows are added up on another stream than they are copied on") {
    find(race("boxes", {"copy"}, {"sum"}), [](World& w) {
        Boxes rows(w);
        rows.load(w);
        settle(w.main);
        ragged::sum(w.side, rows.totals, rows.boxes);
        finish(w);
    });
}

TEST_CASE("Hazard: rows are sorted, and another stream makes them a softmax in place") {
    find(race("boxes", {"sort"}, {"softmax"}), [](World& w) {
        Boxes rows(w);
        ragged::sort(w.main, rows.sorted, rows.boxes, rows.workspace);
        settle(w.main);
        ragged::softmax(w.side, rows.boxes, rows.boxes);
        settle(w.side);
        finish(w);
    });
}

TEST_CASE("Hazard: totals of rows are copied by another stream") {
    find(race("totals", {"sum"}, {"copy"}), [](World& w) {
        Boxes rows(w);
        ragged::sum(w.main, rows.totals, rows.boxes);
        settle(w.main);
        copy(w.side, w.result.first(4), rows.totals);
        finish(w);
    });
}

TEST_CASE("Right: a step on rows") {
    pass([](World& w) {
        Boxes rows(w);
        for (int step = 0; step < 3; ++step) {
            rows.load(w);
            ragged::softmax(w.main, rows.boxes, rows.boxes);
            ragged::sum(w.main, rows.totals, rows.boxes);
            ragged::sort(w.main, rows.sorted, rows.boxes, rows.workspace);
        }
        copy(w.main, w.result.first(2), rows.totals.first(2));
        finish(w);
    });
}
#endif

} // namespace sluice::test::hazards_ragged

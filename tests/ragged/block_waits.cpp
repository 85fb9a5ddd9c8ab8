// A packer's block stays as it is, and where it is, until all that reads it is through.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sluice/ragged/column_packer.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/waits.hpp"

namespace ragged_block_waits {

using namespace sluice;
using namespace sluice::test;

namespace {

struct Failing {
    static inline std::string_view failing;

    template <class>
    static void before(const char*) {}
    template <class, class Native>
    static void before(const char* function, Native) {
        if (failing == function)
            throw Error(std::string("no ") + function + " today");
    }
};
using B = Hooked<TestBackend, Failing>;
using Word = std::uint32_t;
using Rows = std::vector<std::vector<Word>>;
using Packer = RaggedPacker<Word, B>;
using Columns = RaggedColumnPacker<Word, B>;
constexpr RaggedCapacity capacity{8, 32};
const Rows rows{{1, 2, 3}, {4}};
const std::vector<Word> row{5, 6};

// Packers that a held stream copies from, or two streams of which the second one is free.
struct Case {
    explicit Case(bool second_reader = false) {
        packer->pack(rows);
        columns->pack(*packer, rows);
        gate.hold(held);
        packer->copy_to(held, batch);
        columns->copy_to(held, column);
        if (second_reader) {
            packer->mark_in_use(free);
            columns->mark_in_use(free);
        }
    }
    template <class Change>
    bool waits(Change&& change) {
        return returns_after_opening(gate, change);
    }

    Gate<B> gate;
    const BasicStream<B> held, free;
    RaggedBatch<Word, B> batch{capacity};
    RaggedColumn<Word, B> column{capacity.values};
    std::optional<Packer> packer{std::in_place, capacity};
    std::optional<Columns> columns{std::in_place, capacity.values};
};

} // namespace

TEST_CASE("RaggedPacker: each change waits for a copy on its way, as do its end and an assignment to it") {
    if (!streams_overlap<B>())
        return;
    for (const bool second : {false, true}) {
        CAPTURE(second);
        const auto waits = [second](auto change) {
            Case now(second);
            const bool waited = now.waits([&] { change(now); });
            now.held.sync();
            const auto seen = to_lists_and_wait(now.held, now.batch, now.column);
            CHECK(to_lists_and_wait(now.held, now.batch) == rows);
            CHECK(seen == rows);
            return waited;
        };
        CHECK(waits([](Case& now) { now.packer->add_row(row); }));
        CHECK(waits([](Case& now) { now.packer->clear(); }));
        CHECK(waits([](Case& now) { now.packer->clear({4, 8}); }));
        CHECK(waits([](Case& now) { now.packer->pack(rows); }));
        CHECK(waits([](Case& now) { now.packer.reset(); }));
        CHECK(waits([](Case& now) { *now.packer = Packer(capacity); }));
        CHECK(waits([](Case& now) {
            Packer moved(std::move(*now.packer)); // and goes at once
        }));
        CHECK(waits([](Case& now) {
            Packer other(capacity);
            other.pack(rows);
            now.columns->pack(other, rows);
        }));
        CHECK(waits([](Case& now) { now.columns.reset(); }));
        CHECK(waits([](Case& now) { *now.columns = Columns(capacity.values); }));
    }
}

TEST_CASE("RaggedPacker: where no event can be recorded behind a copy, copy_to waits for it") {
    if (!streams_overlap<B>())
        return;
    for (const bool column : {false, true}) {
        CAPTURE(column);
        Case now;
        now.gate.open();
        now.held.sync();
        now.packer->pack(rows);
        now.columns->pack(*now.packer, rows);
        Gate<B> gate;
        gate.hold(now.held);
        std::string text;
        CHECK(returns_after_opening(gate, [&] {
            Failing::failing = "record";
            text = text_of([&] {
                if (column)
                    now.columns->copy_to(now.held, now.column);
                else
                    now.packer->copy_to(now.held, now.batch);
            });
            Failing::failing = {};
        }));
        CHECK(contains(text, "no record today"));
        CHECK_FALSE(now.packer->in_use());
        CHECK_FALSE(now.columns->in_use());
    }
}

TEST_CASE("RaggedPacker: a copy that has failed is told once") {
    Case now;
    now.gate.open();
    now.held.sync();
    Failing::failing = "synchronize_event";
    CHECK(contains(text_of([&] { now.packer->clear(); }), "no synchronize_event today"));
    CHECK(text_of([&] { now.packer->clear(); }).empty());
    CHECK(contains(text_of([&] { now.columns->pack(*now.packer, Rows{}); }), "no synchronize_event today"));
    CHECK(text_of([&] { now.columns->pack(*now.packer, Rows{}); }).empty());
    Failing::failing = {};
}

TEST_CASE("RaggedBatch: what the constructor has emptied is empty when it returns") {
    using N = Noting<TestBackend>;
    CallNotes::clear();
    const RaggedBatch<Word, N> batch(capacity);
    CHECK(CallNotes::after("fill_bytes", "synchronize_stream"));
    const BasicStream<N> stream;
    CHECK(batch.counts_and_wait(stream).rows == 0);

    CallNotes::clear();
    RaggedPacker<Word, N> packer(capacity);
    RaggedBatch<Word, N> to(capacity);
    packer.pack(rows);
    packer.copy_to(stream, to);
    CHECK(to_lists_and_wait(stream, to) == rows);
    CHECK(CallNotes::after("copy", "synchronize_stream"));
}

} // namespace ragged_block_waits

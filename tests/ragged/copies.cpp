// Packing and copying: one copy a batch, nothing allocated after the first, and no change under a copy.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <sluice/ragged/column_packer.hpp>

#include "ragged/random_rows.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/gate.hpp"
#include "support/heap_count.hpp"
#include "support/hooked_backend.hpp"

namespace ragged_copies {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
constexpr RaggedCapacity capacity{64, 500};

/// Counts copies, and waits of the host.
struct Tally {
    static inline std::atomic<int> copies{0};
    static inline std::atomic<int> waits{0};

    template <class>
    static void before(const char* function) {
        count(function);
    }
    template <class, class Native>
    static void before(const char* function, Native) {
        count(function);
    }
    static void count(std::string_view function) {
        if (function == "copy")
            ++copies;
        if (function == "synchronize_stream" || function == "synchronize_event")
            ++waits;
    }
};
using Counted = Hooked<B, Tally>;

/// Fails the copy, or the record behind it, when asked to.
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
using Faulty = Hooked<B, Failing>;

std::uint64_t created() {
    const ObjectCounts& counts = B::counts();
    return counts.streams.created + counts.events.created + counts.device_allocations.created +
           counts.pinned_allocations.created + counts.graphs.created + counts.executables.created;
}

} // namespace

TEST_CASE("RaggedPacker: one copy for counts, offsets and values, and no wait") {
    const BasicStream<Counted> stream;
    RaggedPacker<std::uint32_t, Counted> packers[] = {RaggedPacker<std::uint32_t, Counted>(capacity),
                                                      RaggedPacker<std::uint32_t, Counted>(capacity)};
    RaggedBatch<std::uint32_t, Counted> batch(capacity);
    for (std::uint64_t sample = 0; sample < 20; ++sample) {
        const Lists<std::uint32_t> rows = random_rows(capacity, sample);
        RaggedPacker<std::uint32_t, Counted>& packer = packers[sample % 2];
        stream.sync(); // so that the packer, too, need not wait
        packer.pack(rows);
        const int copies = Tally::copies;
        const int waits = Tally::waits;
        packer.copy_to(stream, batch);
        CHECK(Tally::copies == copies + 1);
        CHECK(Tally::waits == waits);
        CHECK(to_lists_and_wait(stream, batch) == rows);
    }
}

TEST_CASE("RaggedPacker: packing and copying again creates and allocates nothing") {
    const BasicStream<B> stream;
    RaggedPacker<std::uint32_t, B> packer(capacity);
    RaggedColumnPacker<std::uint32_t, B> labels(capacity.values);
    RaggedBatch<std::uint32_t, B> batch(capacity, stream);
    RaggedColumn<std::uint32_t, B> column(capacity.values, stream);
    std::vector<Lists<std::uint32_t>> samples;
    std::vector<std::vector<std::uint32_t>> values;
    std::vector<std::vector<std::int64_t>> lengths;
    for (std::uint64_t sample = 0; sample < 40; ++sample) {
        samples.push_back(random_rows(capacity, sample));
        values.push_back(joined(samples.back()));
        lengths.push_back(lengths_of(samples.back()));
    }
    const auto lap = [&] {
        for (std::size_t sample = 0; sample < samples.size(); ++sample) {
            packer.pack(samples[sample]);
            labels.pack(packer, samples[sample]);
            packer.copy_to(stream, batch);
            labels.copy_to(stream, column);
            packer.pack(values[sample], lengths[sample]);
            packer.copy_to(stream, batch);
            packer.clear({200, 32});
            packer.clear(capacity);
            for (const auto& row : samples[sample])
                packer.add_row(row);
            packer.copy_to(stream, batch);
        }
        stream.sync();
    };
    lap();
    const std::uint64_t before = created();
    const HeapCount heap;
    lap();
    const std::uint64_t allocations = heap.allocations();
    CHECK(created() == before);
    if (std::is_same_v<B, Host>) // a device's runtime may make some itself
        CHECK(allocations == 0);
    CHECK(to_lists_and_wait(stream, batch, column) == samples.back());
}

TEST_CASE("RaggedPacker: a change waits until the copy has been made, and only then") {
    if (!streams_overlap<B>())
        return;
    Gate<B> gate;
    const BasicStream<B> stream, other;
    RaggedPacker<std::uint32_t, B> packer(capacity);
    RaggedBatch<std::uint32_t, B> first(capacity), second(capacity);
    const Lists<std::uint32_t> one{{1, 2, 3}, {}, {4}};
    const Lists<std::uint32_t> two{{5}, {6, 7, 8, 9}};
    packer.pack(one);
    CHECK_FALSE(packer.in_use());
    gate.hold(stream);
    packer.copy_to(stream, first);
    CHECK(packer.in_use());
    CHECK(packer.row(0)[2] == 3); // reading is no change

    std::atomic<bool> opened{false};
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        opened = true;
        gate.open();
    });
    packer.pack(two); // waits for the copy, and so for the gate
    CHECK(opened.load());
    opener.join();
    CHECK_FALSE(packer.in_use());
    packer.copy_to(other, second);
    CHECK(to_lists_and_wait(stream, first) == one);
    CHECK(to_lists_and_wait(other, second) == two);
}

TEST_CASE("RaggedPacker: copies on two streams, and further readers, all hold a change up") {
    if (!streams_overlap<B>())
        return;
    for (const bool column : {false, true}) {
        CAPTURE(column);
        Gate<B> gate;
        const BasicStream<B> held, free;
        RaggedPacker<std::uint32_t, B> packer(capacity);
        RaggedColumnPacker<std::uint32_t, B> labels(capacity.values);
        packer.pack(Lists<std::uint32_t>{{1}});
        labels.pack(packer, Lists<std::uint32_t>{{1}});
        gate.hold(held);
        // The later reader is done at once; the earlier one is still to come.
        if (column) {
            labels.mark_in_use(held);
            labels.mark_in_use(free);
        } else {
            packer.mark_in_use(held);
            packer.mark_in_use(free);
        }
        CHECK((column ? labels.in_use() : packer.in_use()));
        gate.open();
        packer.clear();
        labels.pack(packer, Lists<std::uint32_t>{});
        CHECK_FALSE((column ? labels.in_use() : packer.in_use()));
    }
}

TEST_CASE("RaggedPacker: a copy that cannot be enqueued, or followed, leaves the packer usable") {
    const BasicStream<Faulty> stream;
    RaggedPacker<std::uint32_t, Faulty> packer(capacity);
    RaggedBatch<std::uint32_t, Faulty> batch(capacity);
    const Lists<std::uint32_t> rows{{1, 2}, {3}};
    for (const std::string_view call : {"copy", "record"}) {
        packer.pack(rows);
        Failing::failing = call;
        const std::string text = text_of([&] { packer.copy_to(stream, batch); });
        Failing::failing = {};
        CHECK(contains(text, "today"));
        CHECK_FALSE(packer.in_use());
        packer.pack(Lists<std::uint32_t>{{9}});
        packer.copy_to(stream, batch);
        CHECK(to_lists_and_wait(stream, batch) == Lists<std::uint32_t>{{9}});
    }
}

TEST_CASE("RaggedPacker: marked while the stream is being captured") {
    const BasicStream<B> stream;
    const RaggedPacker<std::uint32_t, B> packer(capacity);
    B::begin_capture(stream.get(), CaptureMode::this_thread);
    const std::string text = text_of([&] { packer.mark_in_use(stream); });
    B::destroy_graph(B::end_capture(stream.get()));
    CHECK(contains(text, "RaggedPacker::mark_in_use"));
    CHECK(contains(text, "after each launch"));
}

} // namespace ragged_copies

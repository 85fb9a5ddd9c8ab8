// Batches of sources that are kept too long or filled from shared places; ragged rows.
#include <atomic>
#include <thread>

#include "hazards/pipelines.hpp"

namespace sluice::test::hazards_sources {

namespace {

Fill filling() {
    return [](std::size_t index, Batch& out) { out.images[0] = static_cast<float>(index); };
}
SourceOptions<B> without_workers(int slots, std::size_t batches = 4) {
    return {.workers = 0, .slots = slots, .batches = batches};
}

// A batch is filled while it is being copied: what is found of the fill, and perhaps of the elements that it touches.
void find_refill(const Program& program) {
    find({host_race("batch images", {"copy"}, {"source's fill"}),
          perhaps(host_race("batch images", {"copy"}, {"host"}))},
         program);
}

// Returns when two threads have got here, so that each fills one batch.
void meet(std::atomic<int>& arrived) {
    arrived.fetch_add(1);
    for (int i = 0; arrived.load() < 2 && i < 1000000; ++i)
        std::this_thread::yield();
}

} // namespace

TEST_CASE("Hazard: a batch of a source is given back while it is being copied") {
    find_refill([](World& w) {
        Batches source{Make<Batch>{}, filling(), without_workers(1)};
        auto batch = source.next();
        copy(w.main, w.images, batch->images);
        settle(w.main);
        batch.reset();
        batch = source.next();
        w.main.sync();
    });
}

TEST_CASE("Hazard: a batch of a source is released on another stream than its copy's") {
    find_refill([](World& w) {
        Batches source{Make<Batch>{}, filling(), without_workers(1)};
        auto batch = source.next();
        copy(w.main, w.images, batch->images);
        settle(w.main);
        batch.release(w.side);
        batch.reset();
        batch = source.next();
        w.main.sync();
    });
}

TEST_CASE("Hazard: a batch of a source is released before its copy is enqueued") {
    find_refill([](World& w) {
        Batches source{Make<Batch>{}, filling(), without_workers(1)};
        auto batch = source.next();
        batch.release(w.main);
        copy(w.main, w.images, batch->images);
        settle(w.main);
        batch.reset();
        batch = source.next();
        w.main.sync();
    });
}

TEST_CASE("Hazard: a reference to a source's batch is kept beyond its handle") {
    find_refill([](World& w) {
        Batches source{Make<Batch>{}, filling(), without_workers(1)};
        const Batch* kept = nullptr;
        for (const auto& batch : source) {
            if (kept == nullptr)
                kept = &*batch;
            else if (batch.index() == 2)
                copy(w.main, w.images, kept->images);
            settle(w.main);
        }
        w.main.sync();
    });
}

TEST_CASE("Hazard: a stage keeps a source's batch for the next one") {
    find(thread_race("batch images", {"train", 1}, {"source's fill"}), [](World&) {
        const Batch* kept = nullptr;
        TwoStages two{encode(), train([&](Ref s, const Batch& in, Slot& slot) {
                          copy(s, slot.scores, slot.features);
                          if (kept == nullptr)
                              kept = &in;
                          else
                              reads(s, kept->images, "difference");
                      })};
        Batches source{Make<Batch>{}, filling(), without_workers(2, 3)};
        for (const auto& batch : source)
            two.pipeline.submit(batch);
        two.pipeline.finish();
    });
}

namespace {

struct View {
    PinnedSpan<float, B> values;
};
using Views = Source<View, NoState, AnyCall<void(std::size_t, View&)>, B>;

void fill_view(std::size_t index, View& out) {
    for (std::size_t i = 0; i < out.values.size(); ++i)
        out.values.data()[i] = static_cast<float>(index + 1);
}

} // namespace

TEST_CASE("Hazard: a source's slots are views of one buffer") {
    find(host_race("that slots 0 to 2 of a source share", {"copy"}, {"source's fill"}), [](World& w) {
        Pinned all(count);
        Views source{[&](int) { return View{all}; }, fill_view, without_workers(3)};
        for (auto batch = source.next(); batch; batch = source.next()) {
            copy(w.main, w.images, batch->values);
            settle(w.main);
            batch.release(w.main);
        }
        w.main.sync();
    });
}

TEST_CASE("Right: a source's slots are views of parts of one buffer, or of what is there already") {
    pass([](World& w) {
        Pinned all(3 * count);
        Views parts{
            [&](int slot) { return View{all.subspan(static_cast<std::size_t>(slot) * count, count)}; },
            fill_view,
            {.workers = 2, .slots = 3, .batches = 12}};
        Pinned data = numbered("data");
        Views shifted{[&](int) { return View{data.first(8)}; },
                      [&](std::size_t index, View& out) { out.values = data.subspan(index, 8); },
                      {.workers = 2, .slots = 3, .batches = 12}};
        for (Views* const source : {&parts, &shifted}) {
            for (auto batch = source->next(); batch; batch = source->next()) {
                copy(w.main, w.images.first(batch->values.size()), batch->values);
                batch.release(w.main);
            }
        }
        w.main.sync();
    });
}

TEST_CASE("Hazard: the loop changes a source's batch after it has submitted it") {
    find(host_race("batch images", {nullptr, 0}, {"label smoothing"}), [](World&) {
        TwoStages two{encode(), train()};
        Batches source{Make<Batch>{}, filling(), without_workers(2, 1)};
        for (const auto& batch : source) {
            two.pipeline.submit(batch);
            host_writes(batch->images, "label smoothing");
        }
        two.pipeline.finish();
    });
}

TEST_CASE("Hazard: workers decode into one staging buffer") {
    find(thread_race("host images", {"decode"}, {"decode"}), [](World& w) {
        std::atomic<int> arrived{0};
        Batches source{Make<Batch>{}, Fill([&](std::size_t, Batch& out) {
                           meet(arrived);
                           host_writes(w.host_images, "decode");
                           out.images[0] = 1;
                       }),
                       SourceOptions<B>{.workers = 2, .slots = 4, .batches = 2}};
        for (auto batch = source.next(); batch; batch = source.next())
            batch.release(w.main);
    });
}

TEST_CASE("Hazard: the loop changes what workers read") {
    find(thread_race("host labels", {"schedule"}, {"augment"}), [](World& w) {
        Batches source{Make<Batch>{}, Fill([&](std::size_t, Batch& out) {
                           host_reads(w.host_labels, "augment");
                           out.images[0] = 1;
                       }),
                       SourceOptions<B>{.workers = 1, .slots = 3, .batches = 3}};
        const auto first = source.next();
        host_writes(w.host_labels, "schedule");
        const auto second = source.next();
        const auto third = source.next();
        CHECK(third);
    });
}

// Ragged rows
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Hazard: ragged rows are read on another stream than they are copied on") {
    find(race("boxes", {"copy"}, {"areas"}), [](World& w) {
        RaggedPacker<float, B> packer{{.rows = 4, .values = 16}};
        RaggedBatch<float, B> boxes{packer.capacity()};
        name_buffer(boxes, "boxes");
        packer.pack(std::vector<std::vector<float>>{{1, 2}, {3}});
        packer.copy_to(w.main, boxes);
        settle(w.main);
        reads(w.side, boxes, "areas");
        w.main.sync();
        w.side.sync();
    });
}

TEST_CASE("Hazard: the packer's rows are read by a host function while it is packed again") {
    find(thread_race(nullptr, {"log"}, {"packing"}), [](World& w) {
        RaggedPacker<float, B> packer{{.rows = 4, .values = 16}};
        packer.pack(std::vector<std::vector<float>>{{1, 2}, {3}});
        const PinnedSpan<const float, B> rows{packer.values().data(), packer.values().size()};
        w.main.enqueue([rows] { host_reads(rows, "log"); });
        settle(w.main);
        packer.pack(std::vector<std::vector<float>>{{4, 5}, {6}});
        w.main.sync();
    });
}

TEST_CASE("Hazard: the packer of a captured copy is packed again while a replay reads it") {
    find(host_race(nullptr, {"copy"}, {"packing"}), [](World& w) {
        RaggedPacker<float, B> packer{{.rows = 4, .values = 16}};
        RaggedBatch<float, B> boxes{packer.capacity()};
        packer.pack(std::vector<std::vector<float>>{{1, 2}, {3}});
        const BasicGraphExec<B> load(capture(w.main, [&](Ref s) { packer.copy_to(s, boxes); }));
        load.launch(w.main);
        settle(w.main);
        packer.pack(std::vector<std::vector<float>>{{4, 5}, {6}});
        w.main.sync();
    });
}

TEST_CASE("Hazard: ragged rows are freed while they are read") {
    find(use_after_free("boxes", {"areas"}), [](World& w) {
        RaggedBatch<float, B> boxes{RaggedCapacity{.rows = 4, .values = 16}};
        name_buffer(boxes, "boxes");
        reads(w.side, boxes.counts(), "areas");
    });
}

TEST_CASE("Hazard: a column is copied on another stream than it is read on") {
    find(race("column", {"copy"}, {"weigh"}), [](World& w) {
        RaggedPacker<float, B> packer{{.rows = 4, .values = 16}};
        RaggedColumnPacker<float, B> values{16};
        RaggedColumn<float, B> column{16};
        name_buffer(column.values(), "column");
        fill_bytes(w.main, column.values(), 0);
        w.main.sync();
        packer.pack(std::vector<std::vector<float>>{{1, 2}, {3}});
        values.pack(packer, std::vector<std::vector<float>>{{1, 2}, {3}});
        values.copy_to(w.side, column);
        settle(w.side);
        reads(w.main, column.values(), "weigh");
        w.main.sync();
        w.side.sync();
    });
}

} // namespace sluice::test::hazards_sources

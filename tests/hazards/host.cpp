// What the host writes, reads and frees too early; memory that is gone, or that nobody has written.
#include "hazards/hazards.hpp"

namespace sluice::test::hazards_host {

TEST_CASE("Hazard: the host fills a pinned batch again that is still being copied") {
    find(host_race("host images", {"copy"}, {"load"}), [](World& w) {
        copy(w.main, w.images, w.host_images);
        host_writes(w.host_images, "load");
        w.main.sync();
    });
}

TEST_CASE("Hazard: the host sets one element of a pinned buffer that is still being copied") {
    find(host_race("host images", {"copy"}, {"host"}), [](World& w) {
        copy(w.main, w.images, w.host_images);
        settle(w.main);
        w.host_images[3] = 1;
    });
}

TEST_CASE("Hazard: the host reads a result before it waits") {
    find(host_race("result", {"copy"}, {"print"}), [](World& w) {
        copy(w.main, w.result, w.features);
        host_reads(w.result, "print");
        w.main.sync();
    });
}

TEST_CASE("Hazard: the host reads an element of a result before it waits") {
    find(host_race("result", {"copy"}, {"host"}), [](World& w) {
        copy(w.main, w.result, w.features);
        settle(w.main);
        const float loss = std::as_const(w.result)[0];
        CHECK(loss == 0);
    });
}

TEST_CASE("Hazard: the host waits for another stream than the result's") {
    find(host_race("result", {"copy"}, {"print"}), [](World& w) {
        copy(w.main, w.result, w.features);
        w.side.sync();
        host_reads(w.result, "print");
    });
}

TEST_CASE("Hazard: the host reads although the query returned false") {
    find(host_race("result", {"copy"}, {"print"}), [](World& w) {
        w.hold(w.main);
        copy(w.main, w.result, w.features);
        w.event.record(w.main);
        if (!w.event.is_done())
            host_reads(w.result, "print");
    });
}

TEST_CASE("Hazard: the host waits for an event that was recorded before the last copy") {
    find(host_race("result", {"copy"}, {"print"}), [](World& w) {
        writes(w.main, w.features, "forward");
        w.event.record(w.main);
        copy(w.main, w.result, w.features);
        w.event.sync();
        host_reads(w.result, "print");
    });
}

TEST_CASE("Hazard: two pinned buffers in turns, and the wait is for the other one") {
    find(host_race("host images", {"copy"}, {"load"}), [](World& w) {
        Pinned* const batches[] = {&w.host_images, &w.host_labels};
        Device* const copies[] = {&w.images, &w.labels};
        const Stream* const streams[] = {&w.main, &w.side};
        Event* const read[] = {&w.event, &w.other_event};
        for (std::size_t step = 0; step < 4; ++step) {
            const std::size_t turn = step % 2;
            if (step >= 2)
                read[1 - turn]->sync();
            host_writes(*batches[turn], "load");
            copy(*streams[turn], *copies[turn], *batches[turn]);
            read[turn]->record(*streams[turn]);
        }
    });
}

TEST_CASE("Hazard: the host zeroes an accumulator that is on its way back") {
    find(host_race("result", {"copy"}, {"zero"}), [](World& w) {
        copy(w.main, w.result, w.features);
        host_writes(w.result, "zero");
    });
}

TEST_CASE("Hazard: two streams read a pinned buffer, and the host waits for one of them") {
    find(host_race("host images", {"copy"}, {"load"}), [](World& w) {
        copy(w.main, w.images, w.host_images);
        copy(w.side, w.features, w.host_images);
        w.main.sync();
        host_writes(w.host_images, "load");
    });
}

TEST_CASE("Hazard: a host function reads what another stream still copies") {
    find(thread_race("result", {"copy"}, {"log"}), [](World& w) {
        copy(w.main, w.result, w.features);
        w.side.enqueue([&w] { host_reads(w.result, "log"); });
        w.side.sync();
    });
}

TEST_CASE("Hazard: a wait that comes after the host function, and is made before that runs") {
    find(thread_race("result", {"copy"}, {"log"}), [](World& w) {
        w.hold(w.side);
        copy(w.main, w.result, w.features);
        w.side.enqueue([&w] { host_reads(w.result, "log"); });
        order(w.main, w.side, w.event);
        w.open();
        w.side.sync();
    });
}

TEST_CASE("Hazard: a host function changes parameters that another stream copies") {
    find(thread_race("host labels", {"schedule"}, {"copy"}), [](World& w) {
        w.side.enqueue([&w] { host_writes(w.host_labels, "schedule"); });
        settle(w.side);
        copy(w.main, w.labels, w.host_labels);
    });
}

TEST_CASE("Hazard: a waiting copy reads what another stream still writes") {
    find(race("features", {"forward"}, {"copy"}), [](World& w) {
        writes(w.side, w.features, "forward");
        std::vector<float> values(count);
        copy_and_wait(w.main, values, w.features);
    });
}

TEST_CASE("Hazard: a scalar is set on one stream and read on another") {
    find(race("rate", {"copy"}, {"update"}), [](World& w) {
        DeviceScalar<float, B> rate{1.0f};
        name_buffer(rate.span(), "rate");
        rate.set(w.main, 0.5f);
        reads(w.side, rate.span(), "update");
        w.main.sync();
        w.side.sync();
    });
}

TEST_CASE("Hazard: what a readback's handler was given is kept") {
    find(host_race(nullptr, {"copy"}, {"average"}), [](World& w) {
        PinnedSpan<const float, B> kept;
        Readback<float, B> losses{1,
                                  [&](std::size_t, std::span<const float> loss) {
                                      if (kept.empty())
                                          kept = {loss.data(), loss.size()};
                                  },
                                  1};
        losses.push(w.main, w.features.first(1));
        losses.finish();
        losses.push(w.main, w.features.first(1));
        host_reads(kept, "average");
        w.main.sync();
    });
}

// Lifetime
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Hazard: a buffer is freed while work uses it") {
    find(use_after_free("scratch", {"forward"}), [](World& w) {
        const Device scratch = named("scratch");
        writes(w.main, scratch, "forward");
    });
}

TEST_CASE("Hazard: a buffer is freed after a wait for one of two streams") {
    find(use_after_free("scratch", {"loss"}), [](World& w) {
        const Device scratch = named("scratch");
        writes(w.main, scratch, "forward");
        order(w.main, w.side, w.event);
        reads(w.side, scratch, "loss");
        w.main.sync();
    });
}

TEST_CASE("Hazard: a buffer grows while work uses it") {
    find(use_after_free("scratch", {"forward"}), [](World& w) {
        Device scratch = named("scratch");
        writes(w.main, scratch, "forward");
        scratch = named("larger scratch", 2 * count);
        writes(w.main, scratch, "forward");
        w.main.sync();
    });
}

TEST_CASE("Hazard: a span of a buffer that has grown since") {
    find(use_after_free("scratch", {}, {"forward"}), [](World& w) {
        Device scratch = named("scratch");
        const DeviceSpan<float, B> span = scratch;
        scratch = Device();
        writes(w.main, span, "forward");
    });
}

TEST_CASE("Hazard: a pinned batch is freed while it is being copied") {
    find(use_after_free("batch", {"load"}), [](World& w) {
        const Pinned batch = named<Pinned>("batch");
        reads(w.main, batch, "load");
    });
}

TEST_CASE("Hazard: a prefetched buffer is freed in the order of the stream that filled it") {
    find(use_after_free("prefetched", {"train"}), [](World& w) {
        Device prefetched(count, w.side);
        name_buffer(prefetched, "prefetched");
        writes(w.side, prefetched, "prefetch");
        order(w.side, w.main, w.event);
        reads(w.main, prefetched, "train");
    });
}

TEST_CASE("Hazard: memory of one stream's order is used on another at once") {
    find({{{Mistake::race, Mistake::use_after_free}, "staging", {}, {"augment"}}}, [](World& w) {
        const Device staging(count, w.main);
        name_buffer(staging, "staging");
        writes(w.side, staging, "augment");
        order(w.side, w.main, w.event); // so that freeing it is right
    });
}

TEST_CASE("Hazard: a pool of one's own hands a buffer on that another stream still reads") {
    find(race("pooled", {"train"}, {"augment"}), [](World& w) {
        std::vector<Device> pool;
        pool.push_back(named("pooled"));
        {
            Device taken = std::move(pool.back());
            writes(w.main, taken, "forward");
            reads(w.main, taken, "train");
            pool.back() = std::move(taken);
        }
        const Device again = std::move(pool.back());
        writes(w.side, again, "augment");
        w.main.sync();
        w.side.sync();
    });
}

// Uninitialised memory
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Hazard: a copy of a buffer that nobody has written") {
    find(uninitialized("sums", {"copy"}), [](World& w) {
        const Device sums = named("sums");
        copy(w.main, w.result, sums);
        w.main.sync();
    });
}

TEST_CASE("Hazard: sums are added to and were never zeroed") {
    find(uninitialized("sums", {"add"}), [](World& w) {
        const Device sums = named("sums");
        reads(w.main, sums, "add");
        writes(w.main, sums, "add");
        w.main.sync();
    });
}

TEST_CASE("Hazard: a shorter last batch is read in full") {
    find(uninitialized("batch", {"forward"}), [](World& w) {
        Device batch = named("batch");
        copy(w.main, batch.first(count - 10), w.host_images.first(count - 10));
        settle(w.main);
        reads(w.main, batch, "forward");
        w.main.sync();
    });
}

TEST_CASE("Hazard: memory that came back from the allocator is read as if it were zero") {
    find(uninitialized("second", {"add"}), [](World& w) {
        {
            const Device first = named("first");
            writes(w.main, first, "forward");
            w.main.sync();
        }
        const Device second = named("second");
        reads(w.main, second, "add");
        w.main.sync();
    });
}

} // namespace sluice::test::hazards_host

// What the host writes and reads too early, and memory that was not written.
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

TEST_CASE(
    "Hazard: the host fills a pinned batch again by its elements, and the first ones keep their values") {
    find(host_race("batch", {"load"}, {"host"}), [](World& w) {
        constexpr std::size_t size = 1000;
        Pinned batch = named<Pinned>("batch", size);
        for (float& value : batch)
            value = 0;
        reads(w.main, batch, "load");
        settle(w.main);
        for (std::size_t i = 0; i < size; ++i)
            batch[i] = i < count - 1 ? 0.0f : 1.0f;
        w.main.sync();
    });
}

TEST_CASE("Hazard: the host changes the middle of a large pinned batch that is still being copied") {
    for (const std::size_t size : {std::size_t{100'000}, std::size_t{1'500'000}}) {
        find(host_race("batch", {"load"}, {"host"}), [size](World& w) {
            Pinned batch = named<Pinned>("batch", size);
            for (float& value : batch)
                value = 0;
            reads(w.main, batch, "load");
            float* const values = batch.begin();
            for (std::size_t i = size / 2; i < size / 2 + 500; ++i)
                values[i] = 1;
            w.main.sync();
        });
    }
}

TEST_CASE("Hazard: the host changes one half of a pinned buffer of which two streams copy one each") {
    find(host_race("host images", {"second"}, {"host"}), [](World& w) {
        reads(w.main, w.host_images.first(count / 2), "first");
        reads(w.side, w.host_images.last(count / 2), "second");
        w.host_images.begin()[count - 1] = 0;
        w.main.sync();
        w.side.sync();
    });
}

#if !SLUICE_CHECKED // Otherwise what holds the stream is a host function that the checker knows, and might have changed it.
TEST_CASE(
    "Hazard: the host changes a scalar that is still being copied, with a host function behind the copy") {
    find(host_race("host labels", {"copy"}, {"host"}), [](World& w) {
        w.hold(w.main); // in fact not begun, so that it has changed nothing
        copy(w.main, w.labels, w.host_labels);
        w.main.enqueue([] {});
        w.host_labels[0] = 0.5f;
        reads(w.side, w.features, "loss");
        w.open();
        w.main.sync();
    });
}
#endif

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

TEST_CASE("Hazard: the host zeroes an accumulator that is being copied back") {
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

// Uninitialised memory
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Hazard: a copy of a buffer that was not written") {
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

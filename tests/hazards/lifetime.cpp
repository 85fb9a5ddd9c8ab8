// Memory that is freed too early, or used too late.
#include <optional>
#include <vector>

#include "hazards/hazards.hpp"

namespace sluice::test::hazards_lifetime {

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

// On a GPU, the driver may have reused the place of freed memory, and what is freed must not be used in fact.
#if !defined(SLUICE_TEST_CUDA)

TEST_CASE("Hazard: a span of a pinned buffer that has been freed") {
    find(use_after_free("batch", {}, {"copy"}), [](World& w) {
        PinnedSpan<float, B> span;
        {
            Pinned batch = numbered("batch");
            span = batch.span();
        }
        copy(w.main, w.images, span);
        w.main.sync();
    });
}

TEST_CASE("Hazard: a result is copied to a pinned buffer that has been freed") {
    find(use_after_free("scores", {}, {"copy"}), [](World& w) {
        PinnedSpan<float, B> span;
        {
            Pinned scores = numbered("scores");
            span = scores.span();
        }
        copy(w.main, span, w.features);
        w.main.sync();
    });
}

TEST_CASE("Hazard: a graph is replayed whose pinned input has been freed") {
    find(use_after_free("batch", {}, {"copy"}), [](World& w) {
        std::optional<BasicGraphExec<B>> load;
        {
            const Pinned batch = numbered("batch");
            load.emplace(capture(w.main, [&](Ref s) { copy(s, w.images, batch); }));
            load->launch(w.main);
            w.main.sync();
        }
        load->launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: buffers go out of scope in a loop, each while it is being written") {
    find(use_after_free("staging", {"copy"}), [](World& w) {
        w.hold(w.main);
        std::vector<Device> others;
        for (int step = 0; step < 3; ++step) {
            Device staging = named("staging");
            copy(w.main, staging, w.host_images);
            copy(w.main, w.images, staging);
            staging = Device();
            others.emplace_back(count);
            fill_bytes(w.side, others.back(), 0);
        }
        w.side.sync();
        w.open();
        w.main.sync();
        // The memory was not reused.
        for (const Device& other : others) {
            std::vector<float> values(count);
            copy_and_wait(w.side, values, other);
            CHECK(values == std::vector<float>(count, 0.0f));
        }
    });
}

#endif

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

} // namespace sluice::test::hazards_lifetime

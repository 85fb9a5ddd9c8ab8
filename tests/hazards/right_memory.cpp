// Programs that look suspicious and are right: memory, and graphs.
#include <vector>

#include "hazards/hazards.hpp"

namespace sluice::test::hazards_right_memory {

namespace {

using Builder = BasicGraphBuilder<B>;

} // namespace

// Memory
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Right: buffers are freed after their streams were waited for") {
    pass([](World& w) {
        for (int step = 0; step < 3; ++step) {
            const Device scratch(count * static_cast<std::size_t>(step + 1));
            writes(w.main, scratch, "forward");
            order(w.main, w.side, w.event);
            reads(w.side, scratch, "loss");
            w.side.sync();
        }
    });
}

TEST_CASE("Right: one address after another buffer's end, on another stream") {
    pass([](World& w) {
        const void* address = nullptr;
        bool met = false;
        for (int i = 0; i < 64 && !met; ++i) {
            const Stream* const streams[] = {&w.main, &w.side};
            const Stream& stream = *streams[i % 2];
            const Device scratch(count);
            met = address == scratch.data();
            address = scratch.data();
            writes(stream, scratch, "forward");
            stream.sync();
        }
    });
}

TEST_CASE("Right: memory in the order of one stream, joined by another before it goes") {
    pass([](World& w) {
        const Device scratch(count, w.main);
        writes(w.main, scratch, "forward");
        order(w.main, w.side, w.event);
        reads(w.side, scratch, "loss");
        order(w.side, w.main, w.other_event);
    });
}

TEST_CASE("Right: buffers move within a vector that grows while they are in use") {
    pass([](World& w) {
        std::vector<Device> buffers;
        for (int i = 0; i < 5; ++i) {
            buffers.emplace_back(count);
            writes(w.main, buffers.back(), "forward");
        }
        for (const Device& buffer : buffers)
            reads(w.main, buffer, "loss");
        w.main.sync();
    });
}

TEST_CASE("Right: a pool hands a buffer on to the stream that used it last") {
    pass([](World& w) {
        std::vector<Device> pool(1);
        pool[0] = Device(count);
        for (int step = 0; step < 3; ++step) {
            Device taken = std::move(pool[0]);
            writes(w.main, taken, "forward");
            reads(w.main, taken, "loss");
            pool[0] = std::move(taken);
        }
        w.main.sync();
    });
}

TEST_CASE("Right: a shorter batch of which only what was written is read") {
    pass([](World& w) {
        Device batch(count);
        copy(w.main, batch.first(count - 10), w.host_images.first(count - 10));
        copy(w.main, w.features.first(count - 20), batch.first(count - 20));
        w.main.sync();
    });
}

TEST_CASE("Right: a buffer that is written in parts and then read in full") {
    pass([](World& w) {
        Device batch(count);
        for (const std::size_t part : {std::size_t{3}, std::size_t{0}, std::size_t{2}, std::size_t{1}})
            copy(w.main, batch.subspan(part * count / 4, count / 4), w.host_images.first(count / 4));
        copy(w.main, w.features, batch);
        w.main.sync();
    });
}

TEST_CASE("Right: pinned memory of one's own, in places that freed buffers may have had") {
    pass([](World& w) {
        for (int step = 0; step < 600; ++step) {
            {
                const Pinned batch = numbered("batch");
                copy(w.main, w.images, batch);
                w.main.sync();
            }
            std::vector<float> own(count);
            copy_and_wait(w.main, own, w.images);
#if !defined(SLUICE_TEST_CUDA)
            copy(w.main, w.features, PinnedSpan<float, B>(own.data(), count));
            w.main.sync();
#endif
        }
    });
}

TEST_CASE("Right: large pinned buffers, one after another") {
    pass([](World& w) {
        constexpr std::size_t size = std::size_t{5} << 20;
        for (int step = 0; step < 8; ++step) {
            Pinned batch(size);
            batch[0] = 1;
            copy(w.main, w.images, batch.first(count));
            w.main.sync();
        }
    });
}

// What the host gets at while it is read
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Right: elements that are being copied are read, or set to what they are") {
    pass([](World& w) {
        copy(w.main, w.images, w.host_images);
        copy(w.main, w.labels, w.host_labels);
        float sum = 0;
        for (float& value : w.host_images)
            sum += value;
        for (std::size_t i = 0; i < count; ++i) {
            sum += w.host_labels[i];
            w.host_images[i] = static_cast<float>(i);
        }
        CHECK(sum > 0);
        reads(w.main, w.images, "loss");
        w.main.sync();
    });
}

TEST_CASE("Right: one half is filled again while the other one is being copied") {
    pass([](World& w) {
        copy(w.main, w.images.first(count / 2), w.host_images.first(count / 2));
        float* const values = w.host_images.begin();
        for (std::size_t i = count / 2; i < count; ++i)
            values[i] = 1;
        for (std::size_t i = count / 2; i < count; ++i)
            w.host_images[i] += 1;
        reads(w.main, w.images, "loss");
        w.main.sync();
    });
}

TEST_CASE("Right: what was copied comes back to where it was, and the host had a look meanwhile") {
    pass([](World& w) {
        copy(w.main, w.images, w.host_images);
        const float& first = *w.host_images.begin();
        float& last = w.host_images[count - 1];
        copy(w.main, w.host_images, w.features); // zeros
        settle(w.main);
        reads(w.main, w.images, "loss");
        w.main.sync();
        CHECK(first + last == 0);
        last = 1;
    });
}

TEST_CASE("Right: a host function behind the copy changes what was copied, and the host has a reference") {
    for (const bool held : {true, false}) {
        pass([held](World& w) {
            float* const place = w.host_images.data();
            if (held)
                w.hold(w.main);
            copy(w.main, w.images, w.host_images);
            w.main.enqueue([place] { place[1] = -1; });
            float& second = w.host_images[1];
            w.open();
            settle(w.main);
            reads(w.side, w.features, "loss");
            w.main.sync();
            CHECK(second == -1);
            second = 1;
        });
    }
}

TEST_CASE("Right: a host function before the copy, which another one follows, fills what is copied") {
    pass([](World& w) {
        float* const place = w.host_images.data();
        for (int step = 0; step < 20; ++step) {
            w.main.enqueue([place, step] { place[step] = -1; });
            copy(w.main, w.images, w.host_images);
            w.main.enqueue([place, step] { place[step] = 2; });
            const float* const seen = &w.host_images[static_cast<std::size_t>(step)];
            reads(w.side, w.features, "loss");
            if (step % 5 == 0)
                w.main.sync();
            CHECK(seen == place + step);
        }
        w.main.sync();
    });
}

TEST_CASE("Right: the host sets parameters when an event behind their copy has been waited for") {
    pass([](World& w) {
        for (int step = 0; step < 3; ++step) {
            copy(w.main, w.labels, w.host_labels);
            w.event.record(w.main);
            w.event.sync();
            w.host_labels[0] = static_cast<float>(step);
        }
        w.main.sync();
    });
}

// Graphs
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Right: a replay in order behind another one, on one stream and on two") {
    pass([](World& w) {
        const BasicGraphExec<B> forward(capture(w.main, [&w](Ref s) { copy(s, w.features, w.images); }));
        const BasicGraphExec<B> loss(capture(w.main, [&w](Ref s) { copy(s, w.result, w.features); }));
        forward.launch(w.main);
        loss.launch(w.main);
        order(w.main, w.side, w.event);
        forward.launch(w.side);
        order(w.side, w.main, w.event);
        loss.launch(w.main);
        w.main.sync();
        host_reads(w.result, "print");
    });
}

TEST_CASE("Right: one executable on two streams, whose launches come one after another") {
    pass([](World& w) {
        const BasicGraphExec<B> forward(capture(w.main, [&w](Ref s) { copy(s, w.features, w.images); }));
        forward.launch(w.main);
        forward.launch(w.side);
        forward.launch(w.third);
        w.main.sync();
        w.side.sync();
        w.third.sync();
    });
}

TEST_CASE("Right: a diamond in a graph, twice") {
    pass([](World& w) {
        Builder builder;
        auto load = builder.copy(w.images, w.host_images);
        auto left = builder.copy(w.features, w.images, {load});
        auto right = builder.copy(w.labels, w.images, {load});
        auto join = builder.copy(w.workspace, w.features, {left, right});
        builder.copy(w.result, w.labels, {join});
        auto all = builder.instantiate();
        all.launch(w.main);
        all.launch(w.main);
        w.main.sync();
    });
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("Right: kernels that begin early in a graph") {
    pass([](World& w) {
        Builder builder;
        auto load = builder.copy(w.features, w.images);
        auto first = builder.task([] {}, {load});
        auto second = builder.task([] {}, {first.early()});
        builder.copy(w.result, w.features, {second});
        auto all = builder.instantiate();
        all.launch(w.main);
        all.launch(w.main);
        w.main.sync();
    });
}
#endif

TEST_CASE("Right: a captured fork and join") {
    pass([](World& w) {
        const BasicGraphExec<B> both(capture(w.main, [&w](Ref s) {
            copy(s, w.features, w.images);
            order(s, w.side, w.event);
            copy(w.side, w.labels, w.features);
            copy(s, w.workspace, w.features);
            order(w.side, s, w.other_event);
            copy(s, w.result, w.labels);
        }));
        for (int step = 0; step < 3; ++step)
            both.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Right: a child graph, a branch, and edges made afterwards") {
    pass([](World& w) {
        BasicCondition<B> condition;
        Builder inner;
        inner.fill(w.workspace, 0);
        Builder builder;
        auto setter = builder.setter(condition);
        auto child = builder.child(inner.graph());
        auto decide = builder.host(decides(setter));
        auto branch = builder.if_nonzero(
            condition, [&w](Builder& body) { body.copy(w.features, w.workspace); }, {child, decide});
        auto fetch = builder.copy(w.result, w.features);
        builder.depends(fetch, branch);
        auto all = builder.instantiate();
        all.launch(w.main);
        all.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Right: a node's copy is turned to another buffer, and the former one is free") {
    pass([](World& w) {
        Builder builder;
        auto out = builder.copy(w.features, w.images);
        auto all = builder.instantiate();
        all.launch(w.main);
        w.main.sync();
        all.set(out, w.labels, w.images);
        all.launch(w.main);
        writes(w.side, w.features, "augment");
        w.main.sync();
    });
}

TEST_CASE("Right: eager runs, captures and replays by one GraphCapture on two streams in turns") {
    pass([](World& w) {
        GraphCapture<int, B> graphs;
        for (int step = 0; step < 8; ++step) {
            graphs.run(w.main, 1, [&w](Ref s) { copy(s, w.features, w.images); });
            order(w.main, w.side, w.event);
            graphs.run(w.side, 2, [&w](Ref s) { copy(s, w.result, w.features); });
            order(w.side, w.main, w.event);
        }
        w.main.sync();
        host_reads(w.result, "print");
    });
}

TEST_CASE("Right: two buffers change places in a replay") {
    pass([](World& w) {
        PingPong<float, B> x{count};
        fill_bytes(w.main, x.first(), 0);
        fill_bytes(w.main, x.second(), 0);
        GraphCapture<NoKey, B> graph;
        for (int step = 0; step < 5; ++step)
            graph.run(w.main, [&](Ref s) { x.swap(s); });
        CHECK(x.front_and_wait(w.main).data() == x.second().data());
    });
}

} // namespace sluice::test::hazards_right_memory

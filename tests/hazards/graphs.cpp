// Replays, what is captured, and graphs built by hand.
#include "hazards/hazards.hpp"

namespace sluice::test::hazards_graphs {

namespace {

using Builder = BasicGraphBuilder<B>;

// What a graph of the given work is run by.
template <class F>
BasicGraphExec<B> captured(const Stream& stream, F&& work) {
    return BasicGraphExec<B>(capture(stream, work));
}

} // namespace

TEST_CASE("Hazard: a graph is replayed while eager work uses its memory") {
    find(race("features", {"copy"}, {"loss"}), [](World& w) {
        const auto forward = captured(w.main, [&w](Ref s) { copy(s, w.features, w.images); });
        forward.launch(w.main);
        reads(w.side, w.features, "loss");
        w.main.sync();
    });
}

TEST_CASE("Hazard: eager work updates the weights that a replay on another stream reads") {
    find(race("weights", {"update"}, {"copy"}), [](World& w) {
        const auto forward = captured(w.main, [&w](Ref s) { copy(s, w.features, w.weights); });
        writes(w.side, w.weights, "update");
        forward.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: two graphs on two streams share a workspace") {
    find(race("workspace", {"copy"}, {"fill"}), [](World& w) {
        const auto first = captured(w.main, [&w](Ref s) {
            copy(s, w.workspace, w.images);
            copy(s, w.features, w.workspace);
        });
        const auto second = captured(w.main, [&w](Ref s) { fill_bytes(s, w.workspace, 1); });
        first.launch(w.main);
        settle(w.main);
        second.launch(w.side);
        w.main.sync();
        w.side.sync();
    });
}

TEST_CASE("Hazard: a key for each shape, and the shapes share an output on two streams") {
    find(race("features", {"copy"}, {"fill"}), [](World& w) {
        GraphCapture<int, B> graphs;
        for (int step = 0; step < 3; ++step) {
            graphs.run(w.main, 1, [&w](Ref s) { copy(s, w.features, w.images); });
            settle(w.main);
            graphs.run(w.side, 2, [&w](Ref s) { fill_bytes(s, w.features.first(count / 2), 1); });
            settle(w.side);
            w.main.sync();
            w.side.sync();
        }
    });
}

TEST_CASE("Hazard: a graph is replayed whose buffer was freed since its capture") {
    find(use_after_free("captured", {}, {}), [](World& w) {
        Device buffer = named("captured");
        const auto zero =
            captured(w.main, [&](Ref s) { writes(s, buffer, "zero"), copy(s, w.features, w.images); });
        zero.launch(w.main);
        w.main.sync();
        buffer = Device();
        zero.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: a replay reads what was not written") {
    find(uninitialized("sums", {"copy"}), [](World& w) {
        const Device sums = named("sums");
        const auto fetch = captured(w.main, [&](Ref s) { copy(s, w.result, sums); });
        fetch.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: the host reads the result of a replay before it waits") {
    find(host_race("result", {"copy"}, {"print"}), [](World& w) {
        const auto fetch = captured(w.main, [&w](Ref s) { copy(s, w.result, w.features); });
        fetch.launch(w.main);
        host_reads(w.result, "print");
        w.main.sync();
    });
}

TEST_CASE("Hazard: the host fills the input of a replay that is under way") {
    find(host_race("host images", {"copy"}, {"load"}), [](World& w) {
        const auto load = captured(w.main, [&w](Ref s) { copy(s, w.images, w.host_images); });
        for (int step = 0; step < 2; ++step) {
            host_writes(w.host_images, "load");
            load.launch(w.main);
        }
        w.main.sync();
    });
}

TEST_CASE("Hazard: a captured side stream is forked before the work that it reads") {
    find(race("features", {"copy"}, {"copy"}), [](World& w) {
        const auto both = captured(w.main, [&w](Ref s) {
            fill_bytes(s, w.labels, 0);
            order(s, w.side, w.event);
            copy(s, w.features, w.images);
            copy(w.side, w.result, w.features);
            order(w.side, s, w.other_event);
        });
        both.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: a captured side stream is joined before its last work, which is joined by a later capture "
          "alone") {
    find(race("labels", {"fill"}, {"copy"}), [](World& w) {
        const auto both = captured(w.main, [&w](Ref s) {
            fill_bytes(s, w.features, 0);
            order(s, w.side, w.event);
            copy(w.side, w.workspace, w.images);
            order(w.side, s, w.other_event);
            fill_bytes(w.side, w.labels, 0); // too late for the reader below
            copy(s, w.result, w.labels);
            order(w.side, s, w.other_event);
        });
        both.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: two nodes of a graph without an edge") {
    find(race("features", {"fill"}, {"copy"}), [](World& w) {
        Builder builder;
        builder.fill(w.features, 0);
        builder.copy(w.result, w.features);
        auto both = builder.instantiate();
        both.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: a node of a graph waits for the wrong node") {
    find(race("features", {"copy"}, {"copy"}), [](World& w) {
        Builder builder;
        auto zero = builder.fill(w.labels, 0);
        builder.copy(w.features, w.images, {zero});
        builder.copy(w.result, w.features, {zero});
        auto all = builder.instantiate();
        all.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: a diamond whose last node waits for one branch") {
    find(race("labels", {"copy"}, {"copy"}), [](World& w) {
        Builder builder;
        auto load = builder.copy(w.images, w.host_images);
        auto left = builder.copy(w.features, w.images, {load});
        builder.copy(w.labels, w.images, {load});
        auto first = builder.copy(w.result, w.features, {left});
        builder.copy(w.host_labels, w.labels, {first});
        auto all = builder.instantiate();
        all.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: a child graph and a node beside it") {
    find(race("workspace", {"fill"}, {"copy"}), [](World& w) {
        Builder inner;
        inner.fill(w.workspace, 0);
        Builder builder;
        builder.child(inner.graph());
        builder.copy(w.result, w.workspace);
        auto all = builder.instantiate();
        all.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: the body of a branch and a node beside it") {
    find(race("features", {"copy"}, {"fill"}), [](World& w) {
        BasicCondition<B> condition;
        Builder builder;
        auto setter = builder.setter(condition);
        auto decide = builder.host(decides(setter));
        builder.copy(w.result, w.features, {decide});
        builder.if_nonzero(condition, [&w](Builder& body) { body.fill(w.features, 0); }, {decide});
        auto all = builder.instantiate();
        all.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: a node's copy is turned to a buffer that other work uses") {
    find(race("labels", {"loss"}, {"copy"}), [](World& w) {
        Builder builder;
        auto out = builder.copy(w.features, w.images);
        auto all = builder.instantiate();
        all.launch(w.main);
        reads(w.side, w.labels, "loss");
        all.set(out, w.labels, w.images);
        all.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: a graph that is updated in place writes what other work uses") {
    find(race("labels", {"loss"}, {"copy"}), [](World& w) {
        auto forward = captured(w.main, [&w](Ref s) { copy(s, w.features, w.images); });
        forward.launch(w.main);
        REQUIRE(forward.update(capture(w.main, [&w](Ref s) { copy(s, w.labels, w.images); })));
        reads(w.side, w.labels, "loss");
        forward.launch(w.main);
        w.main.sync();
    });
}

TEST_CASE("Hazard: a captured scalar is set on another stream than the replay's") {
    find(race("rate", {"copy"}, {"copy"}), [](World& w) {
        DeviceScalar<float, B> rate{1.0f};
        name_buffer(rate.span(), "rate");
        const auto update = captured(w.main, [&](Ref s) { copy(s, w.weights.first(1), rate.span()); });
        update.launch(w.main);
        settle(w.main);
        rate.set(w.side, 0.5f);
        w.main.sync();
    });
}

TEST_CASE("Hazard: declared accesses of captured work count with each replay") {
    find(race("weights", {"update"}, {"evaluate"}), [](World& w) {
        const auto step = captured(w.main, [&w](Ref s) {
            copy(s, w.features, w.images);
            writes(s, w.weights, "update");
        });
        step.launch(w.main);
        order(w.main, w.side, w.event);
        reads(w.side, w.weights, "evaluate"); // in order
        order(w.side, w.main, w.other_event);
        step.launch(w.main);
        reads(w.side, w.weights, "evaluate");
        w.main.sync();
    });
}

TEST_CASE("Hazard: two buffers change places on one stream and are read on another") {
    find({{{Mistake::race}, nullptr, {}, {}}}, [](World& w) {
        PingPong<float, B> x{count};
        fill_bytes(w.main, x.first(), 0);
        fill_bytes(w.main, x.second(), 0);
        x.swap(w.main);
        settle(w.main);
        x.swap(w.side);
        w.main.sync();
        w.side.sync();
    });
}

} // namespace sluice::test::hazards_graphs

// Streams and events by hand, wrongly.
#include "hazards/hazards.hpp"

namespace sluice::test::hazards_streams {

TEST_CASE("Hazard: a side stream reads what the main stream has just written") {
    find(race("features", {"forward"}, {"loss"}), [](World& w) {
        writes(w.main, w.features, "forward");
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Hazard: a side stream is joined and was not forked") {
    find(race("images", {"copy"}, {"augment"}), [](World& w) {
        copy(w.main, w.images, w.host_images);
        reads(w.side, w.images, "augment");
        writes(w.side, w.features, "augment");
        order(w.side, w.main, w.event);
        reads(w.main, w.features, "train");
    });
}

TEST_CASE("Hazard: a side stream is forked and not joined") {
    find(race("features", {"augment"}, {"train"}), [](World& w) {
        copy(w.main, w.images, w.host_images);
        order(w.main, w.side, w.event);
        reads(w.side, w.images, "augment");
        writes(w.side, w.features, "augment");
        reads(w.main, w.features, "train");
    });
}

TEST_CASE("Hazard: the event is recorded before the work") {
    find(race("features", {"forward"}, {"loss"}), [](World& w) {
        w.event.record(w.main);
        writes(w.main, w.features, "forward");
        w.side.wait(w.event);
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Hazard: the wait stands after the work") {
    find(race("features", {"forward"}, {"loss"}), [](World& w) {
        writes(w.main, w.features, "forward");
        w.event.record(w.main);
        reads(w.side, w.features, "loss");
        w.side.wait(w.event);
    });
}

TEST_CASE("Hazard: the event is recorded on the wrong stream") {
    find(race("features", {"forward"}, {"loss"}), [](World& w) {
        writes(w.main, w.features, "forward");
        w.event.record(w.third);
        w.side.wait(w.event);
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Hazard: the event is recorded again in between, on another stream") {
    find(race("features", {"forward"}, {"loss"}), [](World& w) {
        writes(w.main, w.features, "forward");
        w.event.record(w.main);
        writes(w.third, w.labels, "decode");
        w.event.record(w.third);
        w.side.wait(w.event);
        reads(w.side, w.labels, "loss");
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Hazard: the wait is made before the record, and stands for the record before it") {
    find(race("features", {"forward"}, {"loss"}), [](World& w) {
        w.event.record(w.main);
        w.side.wait(w.event);
        writes(w.main, w.features, "forward");
        w.event.record(w.main);
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Hazard: the wait is for the other event") {
    find(race("labels", {"copy"}, {"loss"}), [](World& w) {
        copy(w.main, w.images, w.host_images);
        w.event.record(w.main);
        copy(w.main, w.labels, w.host_labels);
        w.other_event.record(w.main);
        w.side.wait(w.event);
        reads(w.side, w.images, "loss");
        reads(w.side, w.labels, "loss");
    });
}

TEST_CASE("Hazard: a query that returned false is ignored") {
    find(race("features", {"copy"}, {"loss"}), [](World& w) {
        w.hold(w.main);
        copy(w.main, w.features, w.images);
        CHECK_FALSE(w.main.is_done());
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Hazard: an event's query that returned false is ignored") {
    find(race("features", {"copy"}, {"loss"}), [](World& w) {
        w.hold(w.main);
        copy(w.main, w.features, w.images);
        w.event.record(w.main);
        CHECK_FALSE(w.event.is_done());
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Hazard: the wrong stream is synchronised") {
    find(race("features", {"forward"}, {"loss"}), [](World& w) {
        writes(w.main, w.features, "forward");
        w.side.sync();
        reads(w.third, w.features, "loss");
    });
}

TEST_CASE("Hazard: the next batch overwrites what is still being read") {
    find(race("features", {"train"}, {"augment"}), [](World& w) {
        writes(w.side, w.features, "augment");
        order(w.side, w.main, w.event);
        reads(w.main, w.features, "train");
        writes(w.side, w.features, "augment");
    });
}

TEST_CASE("Hazard: gradients are zeroed on another stream than they are added up on") {
    find(race("weights", {"fill"}, {"backward"}), [](World& w) {
        fill_bytes(w.main, w.weights, 0);
        writes(w.side, w.weights, "backward");
    });
}

TEST_CASE("Hazard: two streams write one half each, and the join waits for one of them") {
    find(race("features", {"lower"}, {"loss"}), [](World& w) {
        writes(w.side, w.features.first(count / 2), "upper");
        writes(w.third, w.features.last(count / 2), "lower");
        order(w.side, w.main, w.event);
        reads(w.main, w.features, "loss");
    });
}

TEST_CASE("Hazard: halves that overlap by one element") {
    find(race("features", {"upper"}, {"lower"}), [](World& w) {
        writes(w.main, w.features.first(count / 2 + 1), "upper");
        writes(w.side, w.features.last(count / 2), "lower");
    });
}

TEST_CASE("Hazard: a prefetching loop over two buffers that never waits for the reader") {
    find({race("images", {"train"}, {"copy"}), race("features", {"train"}, {"copy"})}, [](World& w) {
        Device* const buffers[] = {&w.images, &w.features};
        for (int step = 0; step < 4; ++step) {
            Device& buffer = *buffers[step % 2];
            copy(w.side, buffer, w.host_images);
            order(w.side, w.main, w.event);
            reads(w.main, buffer, "train");
        }
    });
}

TEST_CASE("Hazard: the buffer is marked as free before its last reader") {
    find(race("images", {"metrics"}, {"copy"}), [](World& w) {
        for (int step = 0; step < 2; ++step) {
            w.side.wait(w.other_event);
            copy(w.side, w.images, w.host_images);
            order(w.side, w.main, w.event);
            reads(w.main, w.images, "train");
            w.other_event.record(w.main);
            reads(w.main, w.images, "metrics");
        }
    });
}

TEST_CASE("Hazard: a chain through a third stream whose second link is made too early") {
    find(race("features", {"forward"}, {"loss"}), [](World& w) {
        writes(w.main, w.features, "forward");
        w.other_event.record(w.third);
        order(w.main, w.third, w.event);
        w.side.wait(w.other_event);
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Hazard: a semaphore is signalled before the work that it stands for") {
    find(race("features", {"forward"}, {"loss"}), [](World& w) {
        BasicSemaphore<B> semaphore;
        semaphore.signal(w.main, 1);
        writes(w.main, w.features, "forward");
        semaphore.signal(w.main, 2);
        semaphore.wait(w.side, 1);
        reads(w.side, w.features, "loss");
        settle(w.main); // the semaphore must outlive the signals
        settle(w.side);
    });
}

TEST_CASE(
    "Hazard: the host asks for a semaphore's value too early, and the counter happens to be further on") {
    find(host_race("features", {"forward"}, {"print"}), [](World& w) {
        BasicSemaphore<B> semaphore;
        semaphore.signal(w.main, 1);
        writes(w.main, w.features, "forward");
        semaphore.signal(w.main, 2);
        settle(w.main);
        CHECK(semaphore.wait_for(1, patience));
        host_reads(w.features, "print");
    });
}

TEST_CASE("Hazard: the host signals a semaphore for work that it has not waited for") {
    find(race("features", {"forward"}, {"loss"}), [](World& w) {
        BasicSemaphore<B> semaphore;
        writes(w.main, w.features, "forward");
        semaphore.signal(1);
        semaphore.wait(w.side, 1);
        reads(w.side, w.features, "loss");
        settle(w.side);
    });
}

TEST_CASE("Hazard: a library's stream is not waited for") {
    find(race("features", {"library"}, {"train"}), [](World& w) {
        const Stream library = Stream::from_native_handle(Plain::create_stream({}));
        writes(library, w.features, "library");
        reads(w.main, w.features, "train");
        library.sync();
    });
}

TEST_CASE("Hazard: the default stream does not wait for a non-blocking stream, nor that for it") {
    const auto legacy = legacy_default_stream();
    if (!legacy)
        return;
    find({race("labels", {"copy"}, {"train"}), race("features", {"forward"}, {"metrics"})}, [&](World& w) {
        copy(*legacy, w.labels, w.host_labels);
        settle(*legacy);
        reads(w.main, w.labels, "train");
        writes(w.side, w.features, "forward");
        reads(*legacy, w.features, "metrics");
        legacy->sync();
    });
}

} // namespace sluice::test::hazards_streams

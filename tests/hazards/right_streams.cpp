// Programs that look suspicious and are right: streams, events and the host.
#include <thread>

#include "hazards/hazards.hpp"

namespace sluice::test::hazards_right_streams {

TEST_CASE("Right: double buffering by hand, with an event each way") {
    pass([](World& w) {
        Device* const buffers[] = {&w.images, &w.features};
        Event filled[2], read[2];
        for (int step = 0; step < 6; ++step) {
            const int turn = step % 2;
            w.side.wait(read[turn]);
            copy(w.side, *buffers[turn], w.host_images);
            order(w.side, w.main, filled[turn]);
            reads(w.main, *buffers[turn], "train");
            read[turn].record(w.main);
        }
    });
}

TEST_CASE("Right: a side stream that is forked and joined") {
    pass([](World& w) {
        writes(w.main, w.features, "forward");
        order(w.main, w.side, w.event);
        reads(w.side, w.features, "loss");
        writes(w.side, w.labels, "loss");
        order(w.side, w.main, w.other_event);
        writes(w.main, w.features, "backward");
        reads(w.main, w.labels, "backward");
    });
}

TEST_CASE("Right: a buffer is used again on another stream after sync") {
    pass([](World& w) {
        writes(w.main, w.features, "forward");
        w.main.sync();
        writes(w.side, w.features, "augment");
        w.side.sync();
        reads(w.third, w.features, "loss");
    });
}

TEST_CASE("Right: a query returned true") {
    pass([](World& w) {
        writes(w.main, w.features, "forward");
        copy(w.main, w.result, w.images);
        while (!w.main.is_done())
            std::this_thread::yield();
        writes(w.side, w.features, "augment");
        host_reads(w.result, "print");
    });
}

TEST_CASE("Right: an event's query returned true") {
    pass([](World& w) {
        copy(w.main, w.result, w.images);
        w.event.record(w.main);
        while (!w.event.is_done())
            std::this_thread::yield();
        host_writes(w.result, "zero");
        writes(w.side, w.images, "augment");
    });
}

TEST_CASE("Right: the times of two events were asked for, which both have been reached") {
    pass([](World& w) {
        Event begin{{.timing = true}}, end{{.timing = true}};
        begin.record(w.main);
        copy(w.main, w.result, w.images);
        end.record(w.main);
        settle(w.main);
        CHECK(elapsed_milliseconds(begin, end) >= 0);
        host_reads(w.result, "print");
    });
}

TEST_CASE("Right: two streams write one half each of one buffer") {
    pass([](World& w) {
        writes(w.main, w.features.first(count / 2), "lower");
        copy(w.side, w.features.last(count / 2), w.host_images.first(count / 2));
        order(w.side, w.main, w.event);
        reads(w.main, w.features, "loss");
    });
}

TEST_CASE("Right: two readers on two streams, and the writer waits for both") {
    pass([](World& w) {
        writes(w.main, w.features, "forward");
        w.event.record(w.main);
        for (const Stream* reader : {&w.side, &w.third}) {
            reader->wait(w.event);
            reads(*reader, w.features, "loss");
        }
        order(w.side, w.main, w.event);
        order(w.third, w.main, w.event);
        writes(w.main, w.features, "forward");
    });
}

TEST_CASE("Right: an event is recorded twice, and the wait stands for the later record") {
    pass([](World& w) {
        w.event.record(w.main);
        writes(w.main, w.features, "forward");
        w.event.record(w.main);
        w.side.wait(w.event);
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Right: an event is recorded again after the wait, which stands for the earlier record") {
    pass([](World& w) {
        writes(w.main, w.features, "forward");
        order(w.main, w.side, w.event);
        w.event.record(w.third);
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Right: an event goes right after the wait for it") {
    pass([](World& w) {
        writes(w.main, w.features, "forward");
        {
            Event passing;
            order(w.main, w.side, passing);
        }
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Right: order by way of a third stream") {
    pass([](World& w) {
        writes(w.main, w.features, "forward");
        order(w.main, w.third, w.event);
        order(w.third, w.side, w.other_event);
        reads(w.side, w.features, "loss");
    });
}

TEST_CASE("Right: order by way of the host") {
    pass([](World& w) {
        writes(w.main, w.features, "forward");
        w.event.record(w.main);
        w.event.sync();
        reads(w.side, w.features, "loss");
        reads(w.third, w.features, "metrics");
    });
}

TEST_CASE("Right: host functions in stream order") {
    pass([](World& w) {
        w.main.enqueue([&w] { host_writes(w.host_images, "generate"); });
        copy(w.main, w.images, w.host_images);
        copy(w.main, w.result, w.images);
        order(w.main, w.side, w.event);
        w.side.enqueue([&w] { host_reads(w.result, "log"); });
        w.side.sync();
        host_writes(w.host_images, "load");
        host_writes(w.result, "zero");
    });
}

TEST_CASE("Right: a pinned batch is filled again after its copy has been waited for") {
    pass([](World& w) {
        for (int step = 0; step < 3; ++step) {
            w.event.sync();
            for (std::size_t i = 0; i < count; ++i)
                w.host_images[i] = static_cast<float>(step);
            copy(w.main, w.images, w.host_images);
            w.event.record(w.main);
        }
    });
}

TEST_CASE("Right: the pointer is taken while the copy is under way, and followed afterwards") {
    pass([](World& w) {
        copy(w.main, w.images, w.host_images);
        float* const values = w.host_images.data();
        w.main.sync();
        values[0] = 7;
        values[count - 1] = 8;
        copy(w.main, w.images, w.host_images);
    });
}

TEST_CASE("Right: a pinned buffer is filled by a copy while the host writes another part of it") {
    pass([](World& w) {
        copy(w.main, w.result.first(count / 2), w.features.first(count / 2));
        host_writes(w.result.last(count / 2), "pad");
        w.result[count - 1] = 3;
        w.main.sync();
    });
}

TEST_CASE("Right: the host reads a batch that is being copied") {
    pass([](World& w) {
        copy(w.main, w.images, w.host_images);
        host_reads(w.host_images, "checksum");
        CHECK(std::as_const(w.host_images)[1] == 1);
        CHECK(w.host_images[2] == 2); // by a reference through which it could be written
    });
}

TEST_CASE("Right: waiting copies from and to one vector") {
    pass([](World& w) {
        std::vector<float> values(count, 1.0f);
        for (const Stream* stream : {&w.main, &w.side, &w.third}) {
            copy_and_wait(*stream, w.features, values);
            copy_and_wait(*stream, values, w.features);
        }
    });
}

TEST_CASE("Right: a scalar is set for each step on one stream") {
    pass([](World& w) {
        DeviceScalar<float, B> rate{1.0f};
        for (int step = 0; step < 20; ++step) {
            rate.set(w.main, 1.0f / static_cast<float>(1 + step));
            reads(w.main, rate.span(), "update");
        }
        w.main.sync();
    });
}

TEST_CASE("Right: results by a readback, and the values are pushed from are overwritten") {
    pass([](World& w) {
        float sum = 0;
        Readback<float, B> losses{1, [&](std::size_t, std::span<const float> loss) { sum += loss[0]; }, 2};
        for (int step = 0; step < 10; ++step) {
            copy(w.main, w.features, w.host_images);
            losses.push(w.main, w.features.first(1));
        }
        losses.finish();
        host_writes(w.host_images, "load");
        CHECK(sum == 0);
    });
}

TEST_CASE("Right: semaphores between streams, from the host and to it") {
    pass([](World& w) {
        BasicSemaphore<B> done, go;
        host_writes(w.host_images, "load");
        go.signal(1);
        go.wait(w.main, 1);
        copy(w.main, w.images, w.host_images);
        done.signal(w.main, 1);
        done.wait(w.side, 1);
        copy(w.side, w.result, w.images);
        done.signal(w.side, 2);
        CHECK(done.wait_for(2, patience));
        host_reads(w.result, "print");
        host_writes(w.host_images, "load");
        w.side.sync();
    });
}

TEST_CASE("Right: the host asks a semaphore for a value that only a later signal reaches") {
    pass([](World& w) {
        BasicSemaphore<B> semaphore;
        semaphore.signal(w.main, 1);
        writes(w.main, w.features, "forward");
        semaphore.signal(w.main, 3);
        CHECK(semaphore.wait_for(2, patience));
        host_reads(w.features, "print");
        w.main.sync();
    });
}

TEST_CASE("Right: the default stream orders blocking streams") {
    const auto legacy = legacy_default_stream();
    if (!legacy)
        return;
    pass([&](World& w) {
        const Stream blocking{{.blocking = true}}, other{{.blocking = true}};
        writes(blocking, w.features, "forward");
        settle(blocking);
        copy(*legacy, w.result, w.features);
        settle(*legacy);
        writes(other, w.features, "forward");
        settle(other);
        legacy->sync();
        host_reads(w.result, "print");
        other.sync();
    });
}

// Waits
// -----------------------------------------------------------------------------------------------------

TEST_CASE("Unnecessary: a wait that another one implies") {
    find_unnecessary_wait([](World& w) {
        for (int step = 0; step < 3; ++step) {
            writes(w.main, w.features, "forward");
            order(w.main, w.side, w.event);
            order(w.main, w.third, w.other_event);
            reads(w.side, w.features, "loss");
            reads(w.third, w.features, "metrics");
            order(w.side, w.third, w.event);
            w.third.wait(w.event); // the same again
            order(w.third, w.main, w.event);
        }
    });
}

TEST_CASE("Unnecessary: a stream waits for itself") {
    find_unnecessary_wait([](World& w) {
        for (int step = 0; step < 3; ++step) {
            writes(w.main, w.features, "forward");
            order(w.main, w.main, w.event);
            reads(w.main, w.features, "loss");
        }
    });
}

TEST_CASE("Unnecessary: a wait for what the host has waited for") {
    find_unnecessary_wait([](World& w) {
        for (int step = 0; step < 3; ++step) {
            writes(w.main, w.features, "forward");
            w.event.record(w.main);
            w.main.sync();
            w.side.wait(w.event);
            reads(w.side, w.features, "loss");
            w.side.sync();
        }
    });
}

} // namespace sluice::test::hazards_right_streams

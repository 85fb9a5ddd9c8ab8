// Contract 1: the ring of slots, and that a ring without its events is found out.
#include <array>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include <sluice/sluice.hpp>

#include "pipeline/thrown.hpp"
#include "support/backend.hpp"
#include "support/delayed_backend.hpp"
#include "support/gate.hpp"

namespace pipeline_slots {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
using Ref = BasicStreamRef<B>;
using Cells = DeviceBuffer<Word, B>;
constexpr std::size_t words = 64;

auto make_cells(Ref stream) {
    return [stream](int) {
        Cells cells(words);
        fill_bytes(stream, cells, 0);
        return cells;
    };
}

// The ring that many write by hand: slots taken in turns, and one of the two events forgotten.
enum class Forgotten { nothing, ready, free };

class HandMadeRing {
public:
    HandMadeRing(int count, Ref stream, Forgotten forgotten) : forgotten_(forgotten) {
        for (int slot = 0; slot < count; ++slot)
            slots_.push_back(std::make_unique<Slot>(make_cells(stream)(slot)));
    }
    Cells& begin_write(Ref producer) {
        Slot& slot = *slots_[written_ % slots_.size()];
        if (forgotten_ != Forgotten::free && written_ >= slots_.size())
            producer.wait(slot.free);
        return slot.cells;
    }
    void end_write(Ref producer) { slots_[written_++ % slots_.size()]->ready.record(producer); }
    Cells& begin_read(Ref consumer) {
        Slot& slot = *slots_[read_ % slots_.size()];
        if (forgotten_ != Forgotten::ready)
            consumer.wait(slot.ready);
        return slot.cells;
    }
    void end_read(Ref consumer) { slots_[read_++ % slots_.size()]->free.record(consumer); }

private:
    struct Slot {
        explicit Slot(Cells made) : cells(std::move(made)) {}
        Cells cells;
        BasicEvent<B> ready, free;
    };
    Forgotten forgotten_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::size_t written_ = 0, read_ = 0;
};

// What a consumer gets to see of batches 1, 2, 3 … when one of the two sides is slow.
template <class Ring>
std::vector<Word> pass_through(Ring& ring, Ref producer, Ref consumer, std::size_t batches, Ref slow_side) {
    Cells zeros(words);
    Cells seen(batches * words);
    fill_bytes(producer, zeros, 0);
    fill_bytes(producer, seen, 0);
    producer.synchronize();
    for (std::size_t batch = 0; batch < batches; ++batch) {
        Cells& to = ring.begin_write(producer);
        if (slow_side == producer)
            ops::spin(producer.native(), 500);
        ops::add_racing(producer.native(), to.data(), zeros.data(), static_cast<Word>(batch) + 1, words);
        ring.end_write(producer);
        Cells& from = ring.begin_read(consumer);
        if (slow_side == consumer)
            ops::spin(consumer.native(), 500);
        ops::add_racing(consumer.native(), seen.data() + batch * words, from.data(), 0, words);
        ring.end_read(consumer);
    }
    producer.synchronize();
    consumer.synchronize();
    std::vector<Word> result(seen.size());
    copy_and_wait(consumer, result, seen);
    return result;
}

std::vector<Word> as_written(std::size_t batches) {
    std::vector<Word> result;
    for (std::size_t batch = 0; batch < batches; ++batch)
        result.insert(result.end(), words, static_cast<Word>(batch) + 1);
    return result;
}

} // namespace

TEST_CASE("Contract 1: a consumer sees each batch as it was written, whichever side is slow") {
    const BasicStream<B> producer, consumer;
    for (const int count : {1, 2, 3}) {
        for (const Ref slow_side : {producer.ref(), consumer.ref()}) {
            CAPTURE(count);
            Delay::set({.seed = static_cast<std::uint64_t>(count)});
            SlotRing<Cells, B> ring(count, make_cells(producer));
            producer.synchronize();
            CHECK(pass_through(ring, producer, consumer, 30, slow_side) == as_written(30));
        }
    }
}

TEST_CASE("Contract 1: without one of a slot's two events the same loop shows wrong batches") {
    if (!streams_overlap<B>())
        return;
    Delay::set({.one_in = 0});
    const BasicStream<B> producer, consumer;
    const auto seen_without = [&](Forgotten forgotten, Ref slow_side) {
        HandMadeRing ring(2, producer, forgotten);
        producer.synchronize();
        return pass_through(ring, producer, consumer, 20, slow_side);
    };
    CHECK(seen_without(Forgotten::nothing, producer) == as_written(20));
    CHECK(seen_without(Forgotten::nothing, consumer) == as_written(20));
    CHECK(seen_without(Forgotten::ready, producer) != as_written(20));
    CHECK(seen_without(Forgotten::free, consumer) != as_written(20));
}

TEST_CASE("Contract 1: a ring within one stream needs no events, and makes none") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    const auto events = B::counts().events.created.load();
    SlotRing<Cells, B> ring(3, make_cells(stream), SlotOrder::within_one_stream);
    CHECK(B::counts().events.created == events);
    CHECK(pass_through(ring, stream, stream, 10, stream) == as_written(10));
}

TEST_CASE("Contract 1: a ring makes two events a slot, once, and slot i from make(i)") {
    const BasicStream<B> stream;
    const auto events = B::counts().events.created.load();
    std::vector<int> made;
    SlotRing<std::unique_ptr<int>, B> ring(3, [&](int slot) {
        made.push_back(slot);
        return std::make_unique<int>(slot);
    });
    CHECK(made == std::vector<int>{0, 1, 2});
    CHECK(ring.size() == 3);
    CHECK(B::counts().events.created == events + 6);
    for (int batch = 0; batch < 10; ++batch) {
        CHECK(*ring.begin_write(stream) == batch % 3);
        ring.end_write(stream);
        CHECK(*ring.begin_read(stream) == batch % 3);
        ring.end_read(stream);
    }
    CHECK(B::counts().events.created == events + 6);
    CHECK(*ring[2] == 2);
    stream.synchronize();
}

TEST_CASE("Contract 1: a slot's value may be immovable") {
    struct Immovable {
        explicit Immovable(int number) : slot(number) {}
        Immovable(const Immovable&) = delete;
        Immovable& operator=(const Immovable&) = delete;
        int slot;
    };
    SlotRing<Immovable, B> ring(2, [](int slot) { return Immovable(slot); });
    CHECK(ring[1].slot == 1);
}

TEST_CASE("Contract 1: a call out of order is refused in a sentence, and changes nothing") {
    const BasicStream<B> stream;
    SlotRing<int, B> ring(2, [](int slot) { return slot; });

    CHECK(contains_all(text_of([&] { ring.end_write(stream); }), {"end_write", "without begin_write"}));
    CHECK(contains_all(text_of([&] { ring.begin_read(stream); }), {"no batch to read"}));
    CHECK(contains_all(text_of([&] { ring.end_read(stream); }), {"end_read", "without begin_read"}));

    CHECK(ring.begin_write(stream) == 0);
    CHECK(contains_all(text_of([&] { ring.begin_write(stream); }), {"begin_write was called twice"}));
    CHECK(contains_all(text_of([&] { ring.begin_read(stream); }), {"no batch to read"}));
    ring.end_write(stream);
    CHECK(ring.begin_write(stream) == 1);
    ring.end_write(stream);
    CHECK(contains_all(text_of([&] { ring.begin_write(stream); }), {"all slots hold batches"}));

    CHECK(ring.begin_read(stream) == 0);
    CHECK(contains_all(text_of([&] { ring.begin_read(stream); }), {"begin_read was called twice"}));
    CHECK(contains_all(text_of([&] { ring.begin_write(stream); }), {"all slots hold batches"}));
    ring.end_read(stream);
    CHECK(ring.begin_write(stream) == 0);
    ring.end_write(stream);
    CHECK(ring.begin_read(stream) == 1);

    stream.synchronize();
    ring.reset();
    CHECK(ring.begin_write(stream) == 0);
    ring.end_write(stream);
    CHECK(ring.begin_read(stream) == 0);
    ring.end_read(stream);
    stream.synchronize();
}

TEST_CASE("Contract 1: a ring of less than one slot is refused") {
    for (const int count : {0, -1}) {
        const std::string text = text_of([&] { SlotRing<int, B>(count, [](int slot) { return slot; }); });
        CHECK(contains_all(text, {"at least 1 slot", "got " + std::to_string(count)}));
    }
}

TEST_CASE("Contract 1: a slot that is not there is refused") {
    SlotRing<int, B> ring(2, [](int slot) { return slot; });
    CHECK(ring[1] == 1);
    for (const int index : {-1, 2})
        CHECK(contains_all(text_of([&] { (void)ring[index]; }), {"no slot of that number"}));
}

} // namespace pipeline_slots

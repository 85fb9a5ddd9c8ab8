/// \file
/// The slots between two stages.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/stream.hpp>

namespace sluice {

/// Whether a ring's producer and consumer use different streams, and so need events between them.
enum class SlotOrder { between_streams, within_one_stream };

/// A ring of preallocated slots that hands batches from one stream to another in order.
///
/// A producer writes a slot after the consumer's last read of it, and a consumer reads a slot after the
/// producer's write of it: two events a slot, made once. Neither side waits on the host. For each batch, call
/// `begin_write`, enqueue the writes, `end_write`; then `begin_read`, enqueue the reads, `end_read`. A call
/// out of this order throws `Error` and changes nothing.
///
/// Driven by one thread. Belongs to the device that was current when it was made.
template <class T, Backend B = DefaultBackend>
class SlotRing {
public:
    /// Makes `count` slots, slot i from `make(i)`. Throws `Error` when `count` is below one, and what `make`
    /// throws.
    template <class Make>
    SlotRing(int count, Make&& make, SlotOrder order = SlotOrder::between_streams);

    /// The slot for the next batch; later work of `producer` comes after the last reads of it.
    T& begin_write(BasicStreamRef<B> producer);
    /// All writes of the slot have been enqueued on `producer`.
    void end_write(BasicStreamRef<B> producer);

    /// The slot of the oldest batch not read yet; later work of `consumer` comes after the writes of it.
    T& begin_read(BasicStreamRef<B> consumer);
    /// All reads of the slot have been enqueued on `consumer`.
    void end_read(BasicStreamRef<B> consumer);

    /// Forgets batches in flight. No stream may still work on a slot.
    void reset() noexcept;

    int size() const noexcept { return static_cast<int>(slots_.size()); }
    /// What `make(index)` made, whatever batch is in it. Throws `Error` where there is no such slot.
    T& operator[](int index) {
        expect(index >= 0 && index < size(), "there is no slot of that number; slots are counted from 0");
        return slots_[static_cast<std::size_t>(index)]->value;
    }

private:
    struct Slot {
        template <class Make>
        Slot(Make& make, int index, SlotOrder order) : value(make(index)) {
            if (order == SlotOrder::between_streams) {
                written.emplace();
                read.emplace();
            }
        }
        T value;
        std::optional<BasicEvent<B>> written;
        std::optional<BasicEvent<B>> read;
    };

    Slot& slot_of(std::size_t batch) noexcept { return *slots_[batch % slots_.size()]; }
    static void expect(bool condition, const char* message) {
        if (!condition) [[unlikely]] {
            throw Error(std::string("SlotRing: ") + message);
        }
    }

    // A slot's value may be immovable, so that each has a place of its own.
    std::vector<std::unique_ptr<Slot>> slots_;
    std::size_t written_ = 0;
    std::size_t read_ = 0;
    bool writing_ = false;
    bool reading_ = false;
    SlotOrder order_;
};

// ---------------------------------------------------------------------------------------------------------------

template <class T, Backend B>
template <class Make>
SlotRing<T, B>::SlotRing(int count, Make&& make, SlotOrder order) : order_(order) {
    if (count < 1)
        throw Error("a pipeline needs at least 1 slot between two stages, got " + std::to_string(count));
    slots_.reserve(static_cast<std::size_t>(count));
    for (int index = 0; index < count; ++index)
        slots_.push_back(std::make_unique<Slot>(make, index, order));
}

template <class T, Backend B>
T& SlotRing<T, B>::begin_write(BasicStreamRef<B> producer) {
    expect(!writing_, "begin_write was called twice; end_write must come between");
    expect(written_ - read_ < slots_.size(),
           "all slots hold batches that have not been read; read one first");
    Slot& slot = slot_of(written_);
    // In the first lap nobody has read the slot yet.
    if (order_ == SlotOrder::between_streams && written_ >= slots_.size())
        producer.wait(*slot.read);
    writing_ = true;
    return slot.value;
}

template <class T, Backend B>
void SlotRing<T, B>::end_write(BasicStreamRef<B> producer) {
    expect(writing_, "end_write was called without begin_write");
    if (order_ == SlotOrder::between_streams)
        slot_of(written_).written->record(producer);
    writing_ = false;
    ++written_;
}

template <class T, Backend B>
T& SlotRing<T, B>::begin_read(BasicStreamRef<B> consumer) {
    expect(!reading_, "begin_read was called twice; end_read must come between");
    expect(read_ < written_, "there is no batch to read; write one first");
    Slot& slot = slot_of(read_);
    if (order_ == SlotOrder::between_streams)
        consumer.wait(*slot.written);
    reading_ = true;
    return slot.value;
}

template <class T, Backend B>
void SlotRing<T, B>::end_read(BasicStreamRef<B> consumer) {
    expect(reading_, "end_read was called without begin_read");
    if (order_ == SlotOrder::between_streams)
        slot_of(read_).read->record(consumer);
    reading_ = false;
    ++read_;
}

template <class T, Backend B>
void SlotRing<T, B>::reset() noexcept {
    written_ = read_ = 0;
    writing_ = reading_ = false;
}

} // namespace sluice

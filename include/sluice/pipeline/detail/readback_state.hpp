// What a readback shares with the graphs that its pushes were captured into, below the type of its values.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/span.hpp>

namespace sluice::detail {

template <Backend B>
class ReadbackPlaces;
template <Backend B>
class ReplayedResults;

/// Where a result is on its way to: its values, and behind `length`, where it is known on the device alone, how many.
struct ReadbackPlace {
    std::int64_t* length = nullptr;
    std::byte* values = nullptr;
};

/// All of a readback but its types of values and of handler. Hooks of graphs refer to it as long as it is there. Its functions do what
/// the readback's of the same names do.
template <Backend B>
class ReadbackState {
public:
    using Places = ReadbackPlaces<B>;
    using Replayed = ReplayedResults<B>;

    // Instead of std::function, whose header costs each file that includes sluice a tenth of a second.
    struct AnyHandler {
        virtual ~AnyHandler() = default;
        virtual void operator()(std::size_t index, const std::byte* values, std::size_t size) = 0;
    };

    /// For results of up to `count` values of so many bytes.
    static Shared<ReadbackState> make(std::size_t count, std::size_t value_bytes, Owned<AnyHandler> handler,
                                      int slots);
    ReadbackState(std::size_t count, std::size_t value_bytes, Owned<AnyHandler> handler, int slots);
    ReadbackState& operator=(ReadbackState&&) = delete;
    ~ReadbackState();

    /// `size` values of the device, and where there is a `length` to them, that many count.
    void push(BasicStreamRef<B> stream, const void* values, std::size_t size,
              const DeviceSpan<const std::int64_t, B>* length);
    void poll();
    void finish();
    void reset() noexcept;
    std::size_t pushed() const noexcept { return pushed_; }

    /// Hands over what has arrived, and waits where the graph has no place for the results of another launch.
    void make_room(Replayed& replayed);
    /// The graph has been launched, and its event recorded.
    void append(const Shared<Replayed>& replayed, std::size_t launch);

private:
    class Hook;
    struct Slot;
    struct Entry;

    void push_captured(BasicStreamRef<B> stream, const void* values, std::size_t size,
                       const DeviceSpan<const std::int64_t, B>* length);
    void copy_to_place(BasicStreamRef<B> stream, const ReadbackPlace& place, const void* values,
                       std::size_t size, const DeviceSpan<const std::int64_t, B>* length) const;
    Entry& front() noexcept;
    void append(Entry entry) noexcept;
    void reserve_entries(std::size_t more);
    static bool has_arrived(Entry& entry);
    static void await(Entry& entry);
    static void release(Entry& entry) noexcept;
    Entry pop() noexcept;
    Slot& free_slot();
    void hand_over();

    std::size_t count_;
    std::size_t value_bytes_;
    Owned<AnyHandler> handler_;
    int device_;
    Shared<Places> places_;
    std::size_t spare_ = 0; // Rows to have ready for captures.
    List<Owned<Slot>> slots_;
    std::size_t next_slot_ = 0;
    List<Entry> entries_; // A ring, in the order of the pushes and launches.
    std::size_t first_ = 0;
    std::size_t waiting_ = 0;
    std::size_t pushed_ = 0;
    std::size_t handed_ = 0;
    bool handing_ = false; // Whether the handler is being called.
    Watched<ReadbackState> self_;
    Watched<Hook> latest_; // That of the capture in which a push was captured last.
};

} // namespace sluice::detail

#if SLUICE_HAS_BODIES
#include <sluice/pipeline/detail/readback_state.inl>
#endif

// Pinned memory that knows until when it is being read.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <sluice/backend/detail/checked/object_checks.hpp>
#include <sluice/backend/detail/device_event.hpp>
#include <sluice/backend/detail/memory_pieces.hpp>
#include <sluice/backend/detail/same_device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>

namespace sluice::detail {

/// Pinned memory, and an event behind the work that reads it. `wait` and `changes` come before each change, and a wait
/// before the memory goes. A moved-from block has none.
template <Backend B>
class PinnedBlock {
public:
    explicit PinnedBlock(std::size_t bytes)
        : memory_(bytes), read_(EventOptions{.sleep_while_waiting = true}), device_(B::current_device()) {}
    PinnedBlock(PinnedBlock&& other) noexcept
        : memory_(std::move(other.memory_)), read_(std::move(other.read_)), reader_(other.reader_),
          device_(other.device_), in_use_(std::exchange(other.in_use_, false)) {}
    PinnedBlock& operator=(PinnedBlock&& other) noexcept {
        if (this != &other) {
            wait_quietly();
            memory_ = std::move(other.memory_);
            read_ = std::move(other.read_);
            reader_ = other.reader_;
            device_ = other.device_;
            in_use_ = std::exchange(other.in_use_, false);
        }
        return *this;
    }
    ~PinnedBlock() { wait_quietly(); }

    std::byte* data() const noexcept { return const_cast<std::byte*>(memory_.data()); }
    std::size_t bytes() const noexcept { return memory_.bytes(); }
    /// Of the streams that may read it.
    int device() const noexcept { return device_; }

    /// What `stream` has been handed so far reads the memory, beside what was said before.
    void mark_in_use(BasicStreamRef<B> stream) {
        [[maybe_unused]] const typename ObjectChecks<B>::LibraryScope library;
        or_synced(stream, [&] {
            // One event stands for all readers.
            if (in_use_ && !(reader_ == stream.get()))
                stream.wait(read_);
            read_.record(stream);
        });
        reader_ = stream.get();
        in_use_ = true;
    }

    bool in_use() const { return in_use_ && !read_.is_done(); }

    /// Returns when the memory may change. Throws `Error` for a fault of the work that reads it, once.
    void wait() {
        if (!in_use_) [[likely]]
            return;
        in_use_ = false;
        read_.sync();
    }
    /// The host changes the memory now.
    void changes() {
        (void)owned_by("ragged packer", data());
        ObjectChecks<B>::host_writes(data(), bytes(), "packing");
    }
    /// Throws `Error` where `piece`, which the packer's function `call` was given as `what`, lies in the memory behind its
    /// first `kept` bytes: packing would write over it before it is read.
    void require_outside(CallName call, const char* what, const Piece& piece, std::size_t kept = 0) const {
        if (overlap(piece, {data() + kept, bytes() - kept})) [[unlikely]]
            throw_overlap(call, what, "the packer's own block",
                          ", which packing writes over; expected a copy in memory of the caller's");
    }

private:
    void wait_quietly() noexcept {
        try {
            wait();
        } catch (...) {
            // The stream has failed, and the next wait for it reports the error.
        }
    }

    PinnedBuffer<std::byte, B> memory_;
    BasicEvent<B> read_;
    typename B::NativeStream reader_{};
    int device_;
    bool in_use_ = false;
};

/// What `mark_in_use` of the packer `who` does.
template <Backend B>
void mark_in_use(PinnedBlock<B>& block, BasicStreamRef<B> stream, const char* who) {
    (void)owned_by("ragged packer", block.data());
    if (records(stream)) {
        throw Error(std::string(who) + "::mark_in_use: nothing reads the block while the stream is being "
                                       "captured; call it after each launch of the graph");
    }
    require_same_device(stream, {who, "::mark_in_use"}, "the packer", block.device());
    block.mark_in_use(stream);
}

} // namespace sluice::detail

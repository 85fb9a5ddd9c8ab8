// What CPU stages need: threads, and batches that these read later.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/host.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/boundary/stage_call.hpp>

namespace sluice::detail {

/// The threads of one CPU stage, which take batches in turns, each with a stream that runs what it is handed at once. A template, so
/// that a program without pipelines of `B` does not compile the streams of `Host`.
template <Backend B>
class CpuThreads {
public:
    void start(int count) {
        for (int thread = 0; thread < count; ++thread) {
            threads_.emplace_back();
            streams_.push_back(BasicStream<Host>::make_inline());
        }
    }
    std::size_t count() const noexcept { return threads_.size(); }
    BasicStreamRef<Host> thread_of(std::size_t batch) const noexcept {
        return threads_[batch % threads_.size()];
    }
    BasicStreamRef<Host> stream_of(std::size_t batch) const noexcept {
        return streams_[batch % streams_.size()];
    }
    /// Waits for all that the threads have been handed, and calls `waited(thread)` for each.
    template <class Waited>
    void drain(Waited&& waited) const noexcept {
        for (const auto& thread : threads_) {
            try {
                thread.sync();
            } catch (...) {
                // What a stage throws is kept as the pipeline's fault.
            }
            waited(thread.ref());
        }
    }
    void clear_failures() const noexcept {
        for (const auto& stream : streams_)
            Host::clear_failure(stream.get());
    }

private:
    List<BasicStream<Host>> streams_; // Used by the threads, which end first.
    List<BasicStream<Host>> threads_;
};

/// Memory of an alignment, or none.
class AlignedMemory {
public:
    AlignedMemory() noexcept = default;
    AlignedMemory(std::size_t bytes, std::size_t alignment)
        : memory_(::operator new (bytes, std::align_val_t{alignment})), alignment_(alignment) {}
    AlignedMemory(AlignedMemory&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), alignment_(other.alignment_) {}
    AlignedMemory& operator=(AlignedMemory&& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(alignment_, other.alignment_);
        return *this;
    }
    ~AlignedMemory() { ::operator delete (memory_, std::align_val_t{alignment_}); }
    void* get() const noexcept { return memory_; }

private:
    void* memory_ = nullptr;
    std::size_t alignment_ = alignof(std::max_align_t);
};

/// A batch for a thread that reads it later, if it does: as a copy, where its bytes are all there is to it. One of some
/// hundred bytes takes no memory.
class KeptBatch {
public:
    template <Backend B>
    KeptBatch(const GivenBatch<B>& batch, bool reads) : place_(batch.value) {
        const BatchOps& ops = *batch.ops;
        if (!reads || ops.copied_bytes == 0)
            return;
        void* to = bytes_;
        if (ops.copied_bytes > sizeof(bytes_) || ops.alignment > alignof(std::max_align_t)) {
            more_ = AlignedMemory(ops.copied_bytes, ops.alignment);
            to = more_.get();
        }
        std::memcpy(to, batch.value, ops.copied_bytes);
        place_ = more_.get();
    }
    const void* get() const noexcept { return place_ != nullptr ? place_ : bytes_; }

private:
    const void* place_; // Null: it is here.
    AlignedMemory more_;
    alignas(std::max_align_t) std::byte bytes_[96];
};

/// What a thread waits for before it calls a stage: what the plan says, or one mark, or nothing.
struct ThreadWaits {
    bool by_plan = true;
    bool any = false;
    std::size_t stage = 0;
    std::size_t batch = 0;
};

} // namespace sluice::detail

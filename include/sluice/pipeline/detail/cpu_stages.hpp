/// \file
/// CPU stages among stages of another backend: their threads, and what these wait for.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/host.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/range.hpp>
#include <sluice/pipeline/detail/stage_order.hpp>
#include <sluice/pipeline/detail/stage_stress.hpp>

namespace sluice::detail {

/// The first thing that went wrong on a pipeline's threads. Any thread may use it.
class ThreadFault {
public:
    bool known() const noexcept { return known_.load(std::memory_order_acquire); }

    void set(std::exception_ptr thrown, std::size_t stage, std::size_t batch) noexcept {
        const std::lock_guard lock(mutex_);
        if (known_.load(std::memory_order_relaxed))
            return;
        thrown_ = std::move(thrown);
        stage_ = stage;
        batch_ = batch;
        known_.store(true, std::memory_order_release);
    }
    /// No thread is at work.
    void clear() noexcept {
        thrown_ = nullptr;
        known_.store(false, std::memory_order_release);
    }
    std::size_t stage() const noexcept { return stage_; }
    std::size_t batch() const noexcept { return batch_; }
    const std::exception_ptr& thrown() const noexcept { return thrown_; }

private:
    std::mutex mutex_;
    std::atomic<bool> known_{false};
    std::exception_ptr thrown_;
    std::size_t stage_ = 0;
    std::size_t batch_ = 0;
};

/// The threads of one CPU stage, which take batches in turns, each with a stream that runs what it is handed at once. A
/// template over nothing, so that pipelines without CPU stages compile none of it.
template <class Lazy = void>
class CpuThreads {
    // Host, as a name that depends.
    using Threads = std::conditional_t<std::is_void_v<Lazy>, Host, Lazy>;

public:
    void start(int count) {
        for (int thread = 0; thread < count; ++thread) {
            threads_.emplace_back();
            streams_.push_back(BasicStream<Threads>::make_inline());
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
    std::vector<BasicStream<Threads>> streams_; // Used by the threads, which end first.
    std::vector<BasicStream<Threads>> threads_;
};

/// A batch for a thread that reads it later, if it does: as a copy, where its bytes are all there is to it.
template <class Batch, bool Reads>
class KeptBatch {
public:
    explicit KeptBatch(const Batch& batch) : kept_(keep(batch)) {}
    const Batch& get() const noexcept {
        if constexpr (by_value)
            return kept_;
        else
            return *kept_;
    }

private:
    static constexpr bool by_value = std::is_trivially_copyable_v<Batch> && Reads;
    static auto keep(const Batch& batch) {
        if constexpr (by_value)
            return batch;
        else
            return &batch;
    }
    std::conditional_t<by_value, Batch, const Batch*> kept_;
};

/// The CPU stages of one pipeline.
template <class Shape>
class CpuStages {
    using Wait = typename StageOrder<typename Shape::backend>::Wait;
    static constexpr std::size_t stages = Shape::stages;
    static constexpr std::size_t with_threads = Shape::any_aside ? stages : 0;

public:
    void start(std::size_t stage, int lanes) { threads_[stage].start(lanes); }
    std::size_t lanes(std::size_t stage) const noexcept { return threads_[stage].count(); }

    /// What the next stage that is called waits for first.
    void add_wait(const Wait& wait) { waits_[wait_count_++] = wait; }

    /// Hands batch `number` to a thread of stage I, which waits for what was added, and calls the stage then.
    template <std::size_t Index, class Core, class Batch>
    void run(Core& core, std::size_t number, const Batch& batch) {
        using Kept = KeptBatch<Batch, Shape::bindings.reads_batch[Index]>;
        // As many as stage I can have: one a stage and side of an edge.
        std::array<Wait, most_waits<Index>> waits{};
        const std::size_t count = std::exchange(wait_count_, 0);
        for (std::size_t i = 0; i < count; ++i)
            waits[i] = waits_[i];
        const BasicStreamRef<Host> thread = threads_[Index].thread_of(number);
        checked::TokenOn<tells_calls<Core>> token{};
        if constexpr (Core::is_checked)
            tell_begin<Index>(core, thread, number, batch, waits, count);
        if constexpr (tells_calls<Core>)
            token = checked::enqueued(checked::key_of(thread.get()));
        thread.enqueue([&core, number, waits, count, token, kept = Kept(batch)] {
            [[maybe_unused]] const checked::TokenScopeOn<tells_calls<Core>> call(token);
            [[maybe_unused]] const auto scope = core.scope_of(Index, core.streams.of(Index, number), number);
            CpuStages& self = core.cpu_stages;
            bool ready = !self.fault_.known();
            try {
                for (std::size_t i = 0; ready && i < count; ++i)
                    ready = self.await(waits[i], core.streams);
                if (ready) {
                    const Range range(core.name(Index));
                    const BasicStreamRef<Host> stream = self.threads_[Index].stream_of(number);
                    if constexpr (Core::is_checked)
                        poison_own_slot_on_thread<Index>(core, number);
                    const std::int64_t begun = core.times ? core.times->now() : 0;
                    core.template invoke<Index>(stream, core.order->slot_of(number), kept.get());
                    Host::throw_if_failed(stream.get()); // what it enqueued there has run
                    if (core.times)
                        core.times->note_thread(Index, number, begun);
                }
            } catch (...) {
                self.fault_.set(std::current_exception(), Index, number);
            }
            // In any case, since streams wait for it.
            core.order->semaphore(Index, number).signal(core.order->lap_of(number));
        });
        if constexpr (Core::is_checked)
            tell_end<Index>(core, thread, number);
    }

    /// Waits on a thread. False when what it waits for will not come.
    template <class Streams>
    bool await(const Wait& wait, const Streams& streams) const {
        [[maybe_unused]] const checked::InternalScopeOn<IsChecked<typename Shape::backend>::value> scope;
        while (!wait.semaphore->wait_for(wait.value, std::chrono::milliseconds(20))) {
            if (fault_.known())
                return false;
            // A device that has failed signals nobody.
            if (!Shape::aside[wait.stage])
                streams.for_each([](auto stream) { (void)stream.is_done(); });
        }
        return true;
    }

    /// What is known to have gone wrong on a thread.
    ThreadFault& fault() noexcept { return fault_; }
    const ThreadFault& fault() const noexcept { return fault_; }

    void drain(std::size_t stage) const noexcept { threads_[stage].drain(tell_waited); }
    void drain() const noexcept {
        for (const auto& threads : threads_)
            threads.drain(tell_waited);
    }
    void forget_faults() noexcept {
        fault_.clear();
        for (const auto& threads : threads_)
            threads.clear_failures();
        wait_count_ = 0;
    }

private:
    // What a stage's callable says of its accesses is said of its thread. A checked `Host` sees to that itself.
    template <class Core>
    static constexpr bool tells_calls = Core::is_checked && !IsChecked<Host>::value;

    // The calling thread has seen the end of all that the thread was handed, also where it has failed and nothing waits for it.
    static void tell_waited([[maybe_unused]] BasicStreamRef<Host> thread) noexcept {
        if constexpr (IsChecked<typename Shape::backend>::value && !IsChecked<Host>::value)
            checked::host_saw(checked::snapshot_of_stream(checked::key_of(thread.get())), true);
    }

    // What the thread will wait for and signal is known now, and streams may be handed what waits for it before it begins.
    template <std::size_t Index, class Core, class Batch, class Waits>
    void tell_begin(Core& core, BasicStreamRef<Host> thread, std::size_t number, const Batch& batch,
                    const Waits& waits, std::size_t count) {
        const checked::Key on = checked::key_of(thread.get());
        const std::size_t lanes = threads_[Index].count();
        checked::name_stream(on, core.name(Index).c_str(), lanes > 1 ? static_cast<int>(number % lanes) : -1,
                             true);
        for (std::size_t i = 0; i < count; ++i)
            checked::semaphore_waited(checked::key_of(waits[i].semaphore->get()), waits[i].value, on);
        core.template tell<Index>(thread, number, batch);
    }
    template <std::size_t Index, class Core>
    void tell_end(Core& core, BasicStreamRef<Host> thread, std::size_t number) {
        checked::semaphore_signalled(checked::key_of(core.order->semaphore(Index, number).get()),
                                     core.order->lap_of(number), checked::key_of(thread.get()));
    }

    template <std::size_t Index>
    static constexpr std::size_t most_waits = [] {
        std::size_t count = 1;
        for (std::size_t k = 0; k < stages; ++k)
            count += (Shape::edges.same[Index][k] ? 1U : 0U) + (Shape::edges.former[Index][k] ? 1U : 0U);
        return count;
    }();

    std::array<Wait, 2 * stages + 1> waits_{};
    std::size_t wait_count_ = 0;
    ThreadFault fault_;
    // Last: its threads end before anything that they use goes.
    std::array<CpuThreads<>, with_threads> threads_;
};

} // namespace sluice::detail

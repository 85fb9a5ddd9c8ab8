// Bodies of backend.hpp.
#pragma once

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include <unistd.h>

#include <sluice/backend/detail/failure.hpp>
#include <sluice/backend/detail/host/capture.hpp>
#include <sluice/backend/detail/host/event.hpp>
#include <sluice/backend/detail/host/memory_map.hpp>
#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/backend/detail/host/semaphore.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/error.hpp>

namespace sluice::host {

inline constexpr std::align_val_t alignment{256};

inline int& device_of_thread() noexcept {
    thread_local int device = 0;
    return device;
}

inline void throw_if(const std::exception_ptr& failure) {
    detail::throw_failure("work on a host stream failed: ", failure);
}

inline void* allocate(std::size_t bytes, const char* kind, ObjectCount& count) {
    // Rounded up to the alignment, a number near the largest one would be 0.
    void* memory = bytes <= ~std::size_t{0} / 2 ? ::operator new(bytes, alignment, std::nothrow) : nullptr;
    if (memory == nullptr) {
        throw Error("out of memory: " + detail::counted(bytes, "byte") + " of " + kind +
                    " memory were asked for on the host");
    }
    count.add();
    return memory;
}

inline void* allocate_for_user(std::size_t bytes) {
    void* const memory = allocate(bytes, "device", Graphs::counts().device_allocations);
    MemoryMap::instance().add(memory, bytes, MemoryMap::Owner::user);
    return memory;
}

// Lives until both the graphs that have it and who allocated it have let it go.
struct GraphMemory {
    explicit GraphMemory(std::size_t bytes)
        : memory(allocate(bytes, "device", Graphs::counts().device_allocations)) {
        MemoryMap::instance().add(memory, bytes, MemoryMap::Owner::graph);
    }
    GraphMemory& operator=(GraphMemory&&) = delete;
    ~GraphMemory() {
        if (MemoryMap::instance().let_go(memory, MemoryMap::Owner::graph))
            ::operator delete(memory, alignment);
    }
    void* const memory;
};

inline void free_for_user(void* memory) noexcept {
    if (MemoryMap::instance().let_go(memory, MemoryMap::Owner::user))
        ::operator delete(memory, alignment);
    Graphs::counts().device_allocations.remove();
}

inline void* allocate_for_graph(std::size_t bytes, Capture& capture) {
    detail::Shared<GraphMemory> owner = detail::make_shared_value<GraphMemory>(bytes);
    void* const memory = owner->memory;
    try {
        capture.keep(std::move(owner), memory, bytes);
    } catch (...) { // The capture is of no use any longer.
        free_for_user(memory);
        throw;
    }
    return memory;
}

inline void disturb_by_free() noexcept {
    if (any_capture()) [[unlikely]]
        (void)Capture::disturb("free_device: memory was freed while a stream was being captured");
}

inline void refuse_disturbance(const char* call) {
    if (!any_capture()) [[likely]]
        return;
    const std::string reason = std::string(call) + ": a stream is being captured, which memory that is not "
                                                   "allocated in stream order would disturb; allocate it "
                                                   "before";
    if (Capture::disturb(reason))
        throw Error(reason);
}

SLUICE_BODY void Functions::enqueue_task(NativeStream stream, Task task) {
    if (captured(stream, [&] { return task_node(std::move(task)); }))
        return;
    stream->push(std::move(task));
}

SLUICE_BODY int Functions::device_count() {
    static const int count = [] {
        const char* const text = std::getenv("SLUICE_HOST_DEVICES");
        if (text == nullptr || *text == '\0')
            return 1;
        char* end = nullptr;
        const long asked = std::strtol(text, &end, 10);
        if (*text < '0' || *text > '9' || *end != '\0' || asked < 1 || asked > 64) {
            throw Error("SLUICE_HOST_DEVICES is \"" + std::string(text) +
                        "\"; expected a whole number from 1 to 64");
        }
        return static_cast<int>(asked);
    }();
    return count;
}

SLUICE_BODY int Functions::current_device() noexcept { return device_of_thread(); }

// That there is such a device, for `call`.
inline void require_device(const char* call, int device) {
    const int count = Functions::device_count();
    if (device < 0 || device >= count)
        throw Error(std::string("Host::") + call + '(' + std::to_string(device) +
                    "): " + detail::there_are(count, "host device") + ", numbered from 0");
}

SLUICE_BODY void Functions::set_device(int device) {
    require_device("set_device", device);
    device_of_thread() = device;
}

SLUICE_BODY std::string Functions::device_name(int device) {
    require_device("device_name", device);
    return "CPU (" + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " hardware threads)";
}

SLUICE_BODY Functions::NativeStream Functions::create_stream(const StreamOptions& options) {
    try {
        auto* stream = new Queue(options, current_device());
        counts().streams.add();
        return stream;
    } catch (const std::system_error& error) {
        throw Error(std::string("a stream of the Host backend has a thread, which could not be started: ") +
                    error.what());
    }
}

SLUICE_BODY Functions::NativeStream Functions::create_inline_stream(const StreamOptions& options) {
    auto* stream = new Queue(options, current_device(), Queue::Runs::on_caller);
    counts().streams.add();
    return stream;
}

SLUICE_BODY void Functions::destroy_stream(NativeStream stream) noexcept {
    if (const auto capture = stream->capture(); capture != nullptr) [[unlikely]]
        capture->leave(*stream);
    Queue::destroy(stream);
    counts().streams.remove();
}

SLUICE_BODY void Functions::synchronize_stream(NativeStream stream) {
    refuse_in_capture(stream, "sync");
    stream->drain();
    throw_if_failed(stream);
}

SLUICE_BODY bool Functions::stream_done(NativeStream stream) {
    refuse_in_capture(stream, "is_done");
    // In this order: work that fails in between is either not done yet or reported.
    const bool done = stream->idle();
    throw_if_failed(stream);
    return done;
}

SLUICE_BODY int Functions::device_of(NativeStream stream) { return stream->device(); }

SLUICE_BODY int Functions::priority_of(NativeStream stream) { return stream->options().priority; }

SLUICE_BODY Functions::NativeEvent Functions::create_event(const EventOptions& options) {
    auto* event = new Event(options, current_device());
    counts().events.add();
    return event;
}

SLUICE_BODY void Functions::destroy_event(NativeEvent event) noexcept {
    delete event;
    counts().events.remove();
}

SLUICE_BODY void Functions::record(NativeEvent event, NativeStream stream) {
    if (event->device() != stream->device()) [[unlikely]] {
        throw Error("record: the event belongs to host device " + std::to_string(event->device()) +
                    " and the stream to host device " + std::to_string(stream->device()) +
                    "; both must belong to the same");
    }
    event->record(*stream);
}

SLUICE_BODY void Functions::wait(NativeStream stream, NativeEvent event) { event->wait_on(*stream); }

SLUICE_BODY void Functions::synchronize_event(NativeEvent event) {
    event->wait();
    throw_if(event->failure());
}

SLUICE_BODY bool Functions::event_done(NativeEvent event) {
    if (!event->is_done())
        return false;
    throw_if(event->failure());
    return true;
}

SLUICE_BODY bool Functions::event_reached(NativeEvent event) { return event->is_done(); }

SLUICE_BODY float Functions::elapsed_milliseconds(NativeEvent start, NativeEvent stop) {
    if (!start->timing() || !stop->timing()) {
        throw Error("elapsed_milliseconds: both events must be made with EventOptions{.timing = true}");
    }
    if (start->captured() || stop->captured())
        throw Error("elapsed_milliseconds: an event's latest record was captured, and has no time");
    if (!start->recorded() || !stop->recorded())
        throw Error("elapsed_milliseconds: an event has never been recorded");
    if (!start->is_done() || !stop->is_done()) {
        throw Error("elapsed_milliseconds: an event has not been reached yet; wait for both first");
    }
    return static_cast<float>(stop->reached_at() - start->reached_at()) * 1e-6f;
}

SLUICE_BODY void Functions::copy_to_ring(NativeStream stream, const detail::RingCopy& copy) {
    enqueue_task(stream, Task{copy});
}

SLUICE_BODY void Functions::copy_rows(const detail::RowsCopy& copy, CopyKind, NativeStream stream) {
    enqueue_task(stream, Task{copy});
}

SLUICE_BODY std::uint32_t Functions::look_at_semaphore(NativeSemaphore semaphore) noexcept {
    return semaphore->value();
}

SLUICE_BODY void Functions::fail_semaphore(NativeSemaphore semaphore, std::uint32_t value) noexcept {
    semaphore->give_up(value);
}

SLUICE_BODY Functions::NativeSemaphore Functions::create_semaphore() {
    auto* semaphore = new Semaphore;
    counts().semaphores.add();
    return semaphore;
}

SLUICE_BODY void Functions::destroy_semaphore(NativeSemaphore semaphore) noexcept {
    delete semaphore;
    counts().semaphores.remove();
}

SLUICE_BODY void Functions::signal_semaphore(NativeStream stream, NativeSemaphore semaphore,
                                             std::uint32_t value) {
    refuse_in_capture(stream, "signal");
    semaphore->signal_on(*stream, value);
}

SLUICE_BODY void Functions::wait_semaphore(NativeStream stream, NativeSemaphore semaphore,
                                           std::uint32_t value) {
    refuse_in_capture(stream, "wait");
    semaphore->wait_on(*stream, value);
}

SLUICE_BODY void Functions::signal_semaphore(NativeSemaphore semaphore, std::uint32_t value) {
    semaphore->signal(value);
}

SLUICE_BODY std::uint32_t Functions::semaphore_value(NativeSemaphore semaphore) noexcept {
    return semaphore->value();
}

SLUICE_BODY void Functions::reset_semaphore(NativeSemaphore semaphore) { semaphore->reset(); }

SLUICE_BODY void* Functions::allocate_device(std::size_t bytes) {
    refuse_disturbance("allocate_device");
    return allocate_for_user(bytes);
}

SLUICE_BODY void* Functions::allocate_device(std::size_t bytes, NativeStream stream) {
    if (const auto capture = stream->capture(); capture != nullptr) [[unlikely]]
        return allocate_for_graph(bytes, *capture);
    return allocate_for_user(bytes);
}

SLUICE_BODY void Functions::free_device(void* memory) noexcept {
    disturb_by_free();
    free_for_user(memory);
}

SLUICE_BODY void Functions::free_device(void* memory, NativeStream stream) noexcept {
    const bool is_of_graph = MemoryMap::instance().graph_owns(memory);
    if (const auto capture = stream->capture(); capture != nullptr) [[unlikely]] {
        if (is_of_graph)
            capture->note_free(memory);
        else
            capture->invalidate("free_device: memory from before the capture was freed in it, and replays "
                                "would free it again");
    }
    counts().device_allocations.remove();
    if (is_of_graph && !MemoryMap::instance().let_go(memory, MemoryMap::Owner::user))
        return; // It goes with the graph.
    // As a task, not at once: the caller may be a task of this stream, or what this stream waits for.
    const auto free_in_order = [memory] {
        (void)MemoryMap::instance().let_go(memory, MemoryMap::Owner::user);
        ::operator delete(memory, alignment);
    };
    try {
        stream->push(Task{free_in_order}, Queue::Policy::run_always);
    } catch (...) {
        // There is no memory for the task. This block is leaked rather than freed while in use.
    }
}

SLUICE_BODY void* Functions::allocate_pinned(std::size_t bytes, const PinnedOptions&) {
    refuse_disturbance("allocate_pinned");
    return allocate(bytes, "pinned", counts().pinned_allocations);
}

SLUICE_BODY void Functions::free_pinned(void* memory) noexcept {
    retire_pinned(memory);
    delete_retired(memory);
}

SLUICE_BODY void Functions::retire_pinned(void*) noexcept {
    if (any_capture()) [[unlikely]]
        (void)Capture::disturb("free_pinned: memory was freed while a stream was being captured");
    counts().pinned_allocations.remove();
}

SLUICE_BODY bool Functions::retire_device(void* memory, bool ordered) noexcept {
    if (MemoryMap::instance().graph_owns(memory))
        return false;
    if (!ordered)
        disturb_by_free();
    (void)MemoryMap::instance().let_go(memory, MemoryMap::Owner::user);
    counts().device_allocations.remove();
    return true;
}

SLUICE_BODY void Functions::delete_retired(void* memory) noexcept { ::operator delete(memory, alignment); }

SLUICE_BODY std::size_t Functions::device_memory_in_use() noexcept { return MemoryMap::instance().bytes(); }

SLUICE_BODY void Functions::copy(void* to, const void* from, std::size_t bytes, CopyKind,
                                 NativeStream stream) {
    if (captured(stream, [&] { return copy_node(to, from, bytes); }))
        return;
    stream->push(Task{[to, from, bytes] { std::memcpy(to, from, bytes); }});
}

SLUICE_BODY void Functions::fill_bytes(void* memory, int value, std::size_t bytes, NativeStream stream) {
    fill_elements(memory, static_cast<unsigned char>(value), 1, bytes, stream);
}

SLUICE_BODY void Functions::fill_elements(void* memory, std::uint32_t pattern, std::size_t element_bytes,
                                          std::size_t count, NativeStream stream) {
    const std::size_t bytes = element_bytes * count;
    if (captured(stream, [&] { return fill_node(memory, pattern, element_bytes, bytes); }))
        return;
    stream->push(Task{
        [memory, pattern, element_bytes, bytes] { fill_memory(memory, pattern, element_bytes, bytes); }});
}

SLUICE_BODY void Functions::throw_if_failed(NativeStream stream) { throw_if(stream->failure()); }

SLUICE_BODY void Functions::clear_failure(NativeStream stream) noexcept { stream->clear_failure(); }

} // namespace sluice::host

// A backend that does something of a test's own before each call of another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <sluice/backend/default.hpp>
#include <sluice/backend/detail/checked/interface.hpp>

namespace sluice::test {

/// Forwards every function of the concept `Backend` to `B`. Before those that may throw it calls
///
/// - `Hook::template before<B>("create_event")` where no stream is concerned,
/// - `Hook::template before<B>("record", stream)` where one is,
/// - `Hook::template before<B>("synchronize_event", event)` where only an event is.
///
/// What the hook throws is thrown instead of the call. Objects are counted in `B::counts()`.
template <Backend B, class Hook>
struct Hooked {
    using NativeStream = typename B::NativeStream;
    using NativeEvent = typename B::NativeEvent;

    static constexpr const char* name = B::name;
    static constexpr bool is_checked_backend = sluice::detail::IsChecked<B>::value;
    static constexpr bool sees_writes = sluice::detail::SeesWrites<B>::value;
    static ObjectCounts& counts() noexcept { return B::counts(); }
    static auto findings() requires requires { B::findings(); }
    { return B::findings(); }

    static int device_count() {
        before("device_count");
        return B::device_count();
    }
    static int current_device() {
        before("current_device");
        return B::current_device();
    }
    static void set_device(int device) {
        before("set_device");
        B::set_device(device);
    }
    static std::string device_name(int device) {
        before("device_name");
        return B::device_name(device);
    }
    static PriorityRange priorities() {
        before("priorities");
        return B::priorities();
    }

    static NativeStream create_stream(const StreamOptions& options) {
        before("create_stream");
        return B::create_stream(options);
    }
    static void destroy_stream(NativeStream stream) noexcept { B::destroy_stream(stream); }
    static void synchronize_stream(NativeStream stream) {
        before("synchronize_stream", stream);
        B::synchronize_stream(stream);
    }
    static bool stream_done(NativeStream stream) {
        before("stream_done", stream);
        return B::stream_done(stream);
    }
    static int device_of(NativeStream stream) {
        before("device_of", stream);
        return B::device_of(stream);
    }
    static int priority_of(NativeStream stream) {
        before("priority_of", stream);
        return B::priority_of(stream);
    }
    static int multiprocessors() requires ShareBackend<B> {
        before("multiprocessors");
        return B::multiprocessors();
    }
    static int share_unit() requires ShareBackend<B> {
        before("share_unit");
        return B::share_unit();
    }
    static int create_shares(const int* counts, std::size_t count, bool with_rest,
                             void** shares) requires ShareBackend<B> {
        before("create_shares");
        return B::create_shares(counts, count, with_rest, shares);
    }
    static void destroy_share(void* share) noexcept requires ShareBackend<B> { B::destroy_share(share); }
    static void* share_of(NativeStream stream) noexcept requires ShareBackend<B> {
        return B::share_of(stream);
    }
    template <class F>
    static void enqueue(NativeStream stream, F&& callable) requires requires(F f) {
        B::enqueue(stream, std::forward<F>(f));
    }
    {
        before("enqueue", stream);
        B::enqueue(stream, std::forward<F>(callable));
    }

    static NativeEvent create_event(const EventOptions& options) {
        before("create_event");
        return B::create_event(options);
    }
    static void destroy_event(NativeEvent event) noexcept { B::destroy_event(event); }
    static void record(NativeEvent event, NativeStream stream) {
        before("record", stream);
        B::record(event, stream);
    }
    static void wait(NativeStream stream, NativeEvent event) {
        before("wait", stream);
        B::wait(stream, event);
    }
    static void synchronize_event(NativeEvent event) {
        before("synchronize_event", event);
        B::synchronize_event(event);
    }
    static bool event_done(NativeEvent event) {
        before("event_done", event);
        return B::event_done(event);
    }
    static float elapsed_milliseconds(NativeEvent start, NativeEvent stop) {
        before("elapsed_milliseconds");
        return B::elapsed_milliseconds(start, stop);
    }

    using NativeSemaphore = typename B::NativeSemaphore;

    static bool has_ring_copies(bool load) noexcept { return B::has_ring_copies(load); }
    static void copy_to_ring(NativeStream stream, const sluice::detail::RingCopy& copy) {
        before("copy", stream);
        B::copy_to_ring(stream, copy);
    }
    static bool copy_to_place(NativeStream stream, const sluice::detail::RingCopy& copy) requires requires {
        B::copy_to_place(stream, copy);
    }
    {
        before("copy", stream);
        return B::copy_to_place(stream, copy);
    }
    static NativeSemaphore create_semaphore() {
        before("create_semaphore");
        return B::create_semaphore();
    }
    static void destroy_semaphore(NativeSemaphore semaphore) noexcept { B::destroy_semaphore(semaphore); }
    static void signal_semaphore(NativeStream stream, NativeSemaphore semaphore, std::uint32_t value) {
        before("signal_semaphore", stream);
        B::signal_semaphore(stream, semaphore, value);
    }
    static void wait_semaphore(NativeStream stream, NativeSemaphore semaphore, std::uint32_t value) {
        before("wait_semaphore", stream);
        B::wait_semaphore(stream, semaphore, value);
    }
    static void signal_semaphore(NativeSemaphore semaphore, std::uint32_t value) {
        B::signal_semaphore(semaphore, value);
    }
    static std::uint32_t semaphore_value(NativeSemaphore semaphore) { return B::semaphore_value(semaphore); }
    static void reset_semaphore(NativeSemaphore semaphore) { B::reset_semaphore(semaphore); }
    static std::uint32_t look_at_semaphore(NativeSemaphore semaphore) noexcept {
        return B::look_at_semaphore(semaphore);
    }
    static void fail_semaphore(NativeSemaphore semaphore, std::uint32_t value) noexcept {
        B::fail_semaphore(semaphore, value);
    }

    static void* allocate_device(std::size_t bytes) {
        before("allocate_device");
        return B::allocate_device(bytes);
    }
    static void* allocate_device(std::size_t bytes, NativeStream stream) {
        before("allocate_device", stream);
        return B::allocate_device(bytes, stream);
    }
    static void free_device(void* memory) noexcept { B::free_device(memory); }
    static void free_device(void* memory, NativeStream stream) noexcept { B::free_device(memory, stream); }
    static void* allocate_pinned(std::size_t bytes, const PinnedOptions& options = {}) {
        before("allocate_pinned");
        return B::allocate_pinned(bytes, options);
    }
    static void free_pinned(void* memory) noexcept { B::free_pinned(memory); }
    static std::size_t device_memory_in_use() {
        before("device_memory_in_use");
        return B::device_memory_in_use();
    }
    static void copy_rows(const sluice::detail::RowsCopy& copy, CopyKind kind, NativeStream stream) {
        before("copy", stream);
        B::copy_rows(copy, kind, stream);
    }
    static void copy(void* to, const void* from, std::size_t bytes, CopyKind kind, NativeStream stream) {
        before("copy", stream);
        B::copy(to, from, bytes, kind, stream);
    }
    static void fill_bytes(void* memory, int value, std::size_t bytes, NativeStream stream) {
        before("fill_bytes", stream);
        B::fill_bytes(memory, value, bytes, stream);
    }
    static void fill_elements(void* memory, std::uint32_t pattern, std::size_t element_bytes,
                              std::size_t count, NativeStream stream) {
        before("fill_elements", stream);
        B::fill_elements(memory, pattern, element_bytes, count, stream);
    }

    static void check_launches() {
        before("check_launches");
        B::check_launches();
    }
    static void throw_if_failed(NativeStream stream) {
        before("throw_if_failed", stream);
        B::throw_if_failed(stream);
    }
    static void clear_failure(NativeStream stream) noexcept { B::clear_failure(stream); }

    using NativeGraph = typename B::NativeGraph;
    using NativeGraphExec = typename B::NativeGraphExec;
    using NativeNode = typename B::NativeNode;
    using NativeCondition = typename B::NativeCondition;
    using DefaultStreamWatch = typename B::DefaultStreamWatch;

    static bool is_default_stream(NativeStream stream) noexcept { return B::is_default_stream(stream); }
    static bool is_capturing(NativeStream stream) { return B::is_capturing(stream); }
    static void begin_capture(NativeStream stream, CaptureMode mode) {
        before("begin_capture");
        B::begin_capture(stream, mode);
    }
    static NativeGraph end_capture(NativeStream stream) {
        const NativeGraph graph = B::end_capture(stream);
        try {
            before("end_capture");
        } catch (...) {
            B::destroy_graph(graph); // the capture is over, as the concept has it
            throw;
        }
        return graph;
    }
    static NativeGraph create_graph() {
        before("create_graph");
        return B::create_graph();
    }
    static void destroy_graph(NativeGraph graph) noexcept { B::destroy_graph(graph); }
    static std::size_t node_count(NativeGraph graph) { return B::node_count(graph); }
    static std::size_t edge_count(NativeGraph graph) { return B::edge_count(graph); }
    static void write_dot(NativeGraph graph, const char* path) { B::write_dot(graph, path); }
    static auto signature(NativeGraph graph, const std::vector<const void*>& own = {}) {
        return B::signature(graph, own);
    }
    static auto device_pointers(NativeGraph graph) { return B::device_pointers(graph); }
    static bool is_device_memory(const void* pointer) { return B::is_device_memory(pointer); }
    static NativeGraphExec instantiate(NativeGraph graph) {
        before("instantiate");
        return B::instantiate(graph);
    }
    static void destroy_graph_exec(NativeGraphExec executable) noexcept { B::destroy_graph_exec(executable); }
    static bool update(NativeGraphExec executable, NativeGraph graph) {
        before("update");
        return B::update(executable, graph);
    }
    static void upload(NativeGraphExec executable, NativeStream stream) {
        before("upload");
        B::upload(executable, stream);
    }
    static void launch(NativeGraphExec executable, NativeStream stream) {
        before("launch", stream);
        B::launch(executable, stream);
    }

    // Nodes by hand, and conditions. Where `B` has none of them, these are not called.
    template <class... Args>
    static decltype(auto) add_empty(NativeGraph graph, Args... args) {
        before("add_empty");
        return B::add_empty(graph, args...);
    }
    template <class... Args>
    static decltype(auto) add_copy(NativeGraph graph, Args... args) {
        before("add_copy");
        return B::add_copy(graph, args...);
    }
    template <class... Args>
    static decltype(auto) add_fill(NativeGraph graph, Args... args) {
        before("add_fill");
        return B::add_fill(graph, args...);
    }
    template <class... Args>
    static decltype(auto) add_host(NativeGraph graph, Args... args) {
        before("add_host");
        return B::add_host(graph, args...);
    }
    // Of a checked backend alone.
    template <class F>
    static auto call_of_node(F task) {
        return B::call_of_node(std::move(task));
    }
    template <class... Args>
    static void node_calls(const Args&... args) {
        B::node_calls(args...);
    }
    template <class... Args>
    static decltype(auto) add_child(NativeGraph graph, Args... args) {
        before("add_child");
        return B::add_child(graph, args...);
    }
    template <class... Args>
    static decltype(auto) add_condition(NativeGraph graph, Args... args) {
        before("add_condition");
        return B::add_condition(graph, args...);
    }
    static void add_dependency(NativeGraph graph, NativeNode earlier, NativeNode later) {
        before("add_dependency");
        B::add_dependency(graph, earlier, later);
    }
    template <class... Args>
    static void set_copy(NativeGraphExec executable, Args... args) {
        before("set_copy");
        B::set_copy(executable, args...);
    }
    template <class... Args>
    static void set_fill(NativeGraphExec executable, Args... args) {
        before("set_fill");
        B::set_fill(executable, args...);
    }
    template <class... Args>
    static void set_host(NativeGraphExec executable, Args... args) {
        before("set_host");
        B::set_host(executable, args...);
    }
    template <class... Args>
    static void set_child(NativeGraphExec executable, Args... args) {
        before("set_child");
        B::set_child(executable, args...);
    }
    static NativeGraph capturing_graph(NativeStream stream) { return B::capturing_graph(stream); }
    static unsigned long long capture_number(NativeStream stream) { return B::capture_number(stream); }
    static void require_conditions(ConditionKind kind, int bodies) {
        before("require_conditions");
        B::require_conditions(kind, bodies);
    }
    static NativeCondition create_condition(NativeGraph graph, unsigned* word) {
        before("create_condition");
        return B::create_condition(graph, word);
    }
    static void capture_condition(NativeStream stream, NativeCondition condition, ConditionKind kind,
                                  int count, NativeGraph* bodies) {
        before("capture_condition", stream);
        B::capture_condition(stream, condition, kind, count, bodies);
    }
    static void begin_capture_into(NativeStream stream, NativeGraph body, CaptureMode mode) {
        before("begin_capture_into");
        B::begin_capture_into(stream, body, mode);
    }
    static void end_capture_into(NativeStream stream) {
        B::end_capture_into(stream);
        before("end_capture_into"); // the capture is over, as the concept has it
    }

private:
    static void before(const char* function) { Hook::template before<B>(function); }
    static void before(const char* function, NativeStream stream) {
        Hook::template before<B>(function, stream);
    }
    static void before(const char* function, NativeEvent event) { Hook::template before<B>(function, event); }
};

} // namespace sluice::test

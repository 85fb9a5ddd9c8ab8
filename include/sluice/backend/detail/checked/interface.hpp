// What the checked backend and the parts of sluice that know of accesses tell the checker. Declarations alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/checked/scopes.hpp>
#include <sluice/backend/detail/list.hpp>

namespace sluice::detail {

/// Whether `B` is checked: it says so itself.
template <class B>
struct IsChecked {
    static constexpr bool value = requires { requires B::is_checked_backend; };
};
/// Whether all that the streams of a checked backend do goes through it. Kernels do not.
template <class B>
struct SeesWrites {
    static constexpr bool value = requires { requires B::sees_writes; };
};

namespace checked {

/// Handles of several.
struct KeyList {
    const Key* keys;
    std::size_t count;
};

/// Bytes that are read or written.
struct Range {
    const void* begin = nullptr;
    std::size_t bytes = 0;
    bool writes = false;
    bool on_host = false; ///< Whether it is the host's memory, where that is known.
    bool partly = false;  ///< Whether it may be that much of it is not touched.
    bool owned = false;   ///< Of an object's memory: whether that frees it. Otherwise it names it,
    bool shared = false;  ///< perhaps as one of several owners.
    bool output = false;  ///< Of a batch: whether a stage may write there by way of it.
};

/// Names of operations in messages.
enum class Op : std::uint8_t {
    copy,
    fill,
    slot,
    batch,
    declared,
    host,
    allocation,
    free,
    fill_batch,
    result,
    rows
};

/// A callable that a stream runs on the host: whose accesses are those of its stream at a time. 0: not known.
using Token = std::uint64_t;

// Below, `key` is the handle of what the heading names, and `on` a stream's.

// Streams. A blocking one waits for the legacy default stream, and that for it. An inline one's work is its caller's.
void stream_made(Key key, bool blocking, bool runs_on_caller);
void stream_found(Key key, bool blocking, bool default_stream);
bool knows_stream(Key key);
void stream_destroyed(Key key) noexcept;
/// `lane` below 0: of a stage that has one; `thread`: of a CPU stage.
void name_stream(Key key, const char* stage, int lane, bool thread);

// Events. A wait for an event on the host first takes what it stands for: the record may change meanwhile.
void event_destroyed(Key key) noexcept;
void recorded(Key key, Key on);
void waited(Key on, Key key);
struct Snapshot {
    std::uint32_t actor = 0;
    std::uint64_t time = 0;
    void* known = nullptr;
};
Snapshot snapshot_of_event(Key key);
Snapshot snapshot_of_stream(Key key);
/// The calling thread has seen that what the snapshot stands for is over, or (`seen` false) it has not.
void host_saw(const Snapshot& snapshot, bool seen) noexcept;

// Semaphores.
void semaphore_destroyed(Key key) noexcept;
void semaphore_signalled(Key key, std::uint32_t value, Key on);
void semaphore_signalled_by_host(Key key, std::uint32_t value);
void semaphore_waited(Key key, std::uint32_t value, Key on);
void semaphore_seen(Key key, std::uint32_t value);    // at that value
void semaphore_reached(Key key, std::uint32_t value); // at that value or above
void semaphore_reset(Key key);

// Memory. `on`: in whose order; `ordered` false: in no stream's.
/// `sees_writes` false: device memory may be written by work that the checker does not see, such as kernels.
void allocated(const void* memory, std::size_t bytes, bool device, bool sees_writes, bool ordered, Key on);
/// Whether work may still use it.
bool freed(const void* memory, bool ordered, Key on) noexcept;
/// `memory`, which was freed, stays where it is for a while: it is not reused, and what still uses it does no harm.
void keep(void* memory, void (*give_back)(void*) noexcept) noexcept;
void name_memory(const void* memory, std::size_t bytes, const char* name);

// Work. Throw `Error` for a mistake.
void accesses(Key on, const Range* ranges, std::size_t count, Op op, const char* what);
Token enqueued(Key on);
/// A name for a callable that graphs run, each launch once.
Token captured_call() noexcept;
/// It runs, for the first launch that it has not run for: the token of this time, with which `call_ended` is called.
Token call_begun(Token captured) noexcept;
/// The callable, which `enqueued` gave this token of its own, has run and is gone, or will not run. `owned`: whether it may have
/// shared memory with others, the last of which frees it.
void call_ended(Token token, bool owned) noexcept;
void host_accesses(const Range* ranges, std::size_t count, Op op, const char* what);
/// The host gets at pinned memory, to read it, perhaps to change it, or both.
void host_touches(const void* begin, std::size_t bytes, bool reads, bool may_write);

/// Whether slots are poisoned, by `Stress`; and one more has been.
/// @{
bool stress_poisons() noexcept;
void count_poisoning() noexcept;
/// @}

/// What the calling thread does is done by a callable of a stream's.
class CallerScope {
public:
    explicit CallerScope(Token token) noexcept : former_(std::exchange(current(), token)) {}
    CallerScope& operator=(CallerScope&&) = delete;
    ~CallerScope() { current() = former_; }
    static Token& current() noexcept {
        thread_local Token token = 0;
        return token;
    }
    /// Of a callable whose accesses are not known: of one that a graph runs in a body.
    static constexpr Token unknown = ~Token{0};
    /// Those above are names that `captured_call` gives.
    static constexpr Token captured = Token{1} << 63;

private:
    Token former_;
};
/// The same while the callable runs.
class TokenScope : public CallerScope {
public:
    explicit TokenScope(Token token) noexcept;
    ~TokenScope();
    /// How many there have been, and how many of them are over.
    /// @{
    static std::uint64_t begun() noexcept;
    static std::uint64_t ended() noexcept;
    /// @}
};
template <bool On>
using TokenOn = std::conditional_t<On, Token, NoScope>;
/// Within the one callable that its token is of.
class CallScope {
public:
    explicit CallScope(Token token) noexcept : token_(token), scope_(token) {}
    CallScope& operator=(CallScope&&) = delete;
    ~CallScope() {
        if (token_ != CallerScope::unknown)
            call_ended(token_, false);
    }

private:
    Token token_;
    TokenScope scope_;
};
template <bool On>
using CallScopeOn = std::conditional_t<On, CallScope, NoScope>;

// Graphs.
void capture_begun(Key on, Key body);
void capture_ended(Key on, Key graph);
void graph_made(Key graph);
void graph_destroyed(Key graph) noexcept;
void node_added(Key graph, Key node, KeyList after, const Range* ranges, std::size_t count, Op op);
/// The node of a graph or an executable runs the callable: see `captured_call`.
void node_calls(Key graph, Key node, Token call);
void dependency_added(Key graph, Key earlier, Key later);
void child_added(Key graph, Key node, KeyList after, Key child);
void bodies_added(Key graph, Key node, KeyList after, KeyList bodies);
void bodies_captured(Key on, KeyList bodies);
void instantiated(Key key, Key graph);
void executable_destroyed(Key key) noexcept;
void node_changed(Key key, Key node, const Range* ranges, std::size_t count);
void child_changed(Key key, Key node, Key child);
void launched(Key key, Key on);
/// The first batch of the work that is captured or launched next on this thread.
void graph_batch(std::uint64_t batch) noexcept;

// Pipelines.
/// A number for a name in messages.
std::uint32_t stage_label(const char* name);
/// Notes which memory the calling thread allocates, as a list for each `begin_list`.
class Listening {
public:
    Listening();
    Listening& operator=(Listening&&) = delete;
    ~Listening();
    void begin_list();
    List<Range>& list(std::size_t number);

private:
    List<List<Range>> lists_;
    List<List<Range>>* outer_;
};
/// `object` owns or names `memory`, as far as that was allocated by sluice. `of` and `slot` name it in messages.
void object_made(const void* object, const Range* memory, std::size_t count, const char* of, int slot);
bool knows_object(const void* object);
/// What it owns, as far as that is still there; `on_host` where it is pinned.
List<Range> memory_of(const void* object);
void object_gone(const void* object) noexcept;

/// One thing that a stage was handed: an object that `object_made` knows, or bytes.
struct Handed {
    const void* object = nullptr;
    Range range{};
    Op op = Op::slot;
    bool writes = false;
};
/// What the stage in scope was handed is read and written by the work that its stream has been handed since. `unseen`: that
/// may be work that passes the checker by, as kernels do.
void stage_called(Key on, const Handed* handed, std::size_t count, bool unseen);
/// The same of the calling thread's own work on an object, such as filling a batch.
void host_works_on(const void* object, bool writes, Op op);
/// Throws the mistake that a destructor has met, if any has.
void throw_pending();
/// A destructor has caught `thrown`: if that is a mistake, the next call throws it.
void not_thrown(const std::exception_ptr& thrown) noexcept;

/// Memory of the host's that an object names: where it changes in this one's life, the calling thread has filled the object's batch.
class NamedWrites {
public:
    NamedWrites& operator=(NamedWrites&&) = delete;
    ~NamedWrites();
    void add(const Range& range);

private:
    struct Named {
        Range range;
        std::uint64_t hash;
    };
    List<Named> all_;
};

/// Memory of a batch. `constant`: nothing but the host can write it by way of the batch. `ordinary`: the host's, neither pinned
/// nor allocated by sluice.
struct BatchRange {
    const void* begin = nullptr;
    std::size_t bytes = 0;
    bool constant = false;
    bool ordinary = false;
    bool output = false; ///< See `Range`.
};
/// No work writes these bytes before those that read them now are done: where they change, it was the host.
void watch(const BatchRange* ranges, std::size_t count);
/// Reads of pinned memory that a pipeline has yet to enqueue: until they are released, the memory must not be written.
class HeldReads {
public:
    HeldReads& operator=(HeldReads&&) = delete;
    ~HeldReads();
    /// Stage `stage` will read batch `batch` there in a graph of `steps` steps, after what the stream `after` has been handed.
    void hold(const BatchRange* ranges, std::size_t count, std::uint32_t stage, std::uint64_t batch,
              std::size_t steps, Key after);
    /// What has been held may change from here on. Throws `Error`, or leaves it to the next call, where something has changed.
    void let_go(bool may_throw);

private:
    std::uint32_t actor_ = 0;
    List<std::uintptr_t> places_;
};

// Threads of sluice's own.
/// The calling thread's own clock, until the end of the scope.
class WorkerScope {
public:
    WorkerScope();
    WorkerScope& operator=(WorkerScope&&) = delete;
    ~WorkerScope();
};
/// What one thread hands to the next: what the giver knows, the taker does.
void handed_over(Key place) noexcept;
void taken_over(Key place) noexcept;
void handover_gone(Key place) noexcept;

} // namespace checked
} // namespace sluice::detail

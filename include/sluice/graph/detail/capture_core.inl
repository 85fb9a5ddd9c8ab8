// Bodies of capture_core.hpp: runs. Those that look after the cache are in capture_entries.inl.
#pragma once

#include <cstdint>

#include <sluice/backend/detail/checked/object_checks.hpp>
#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/graph/detail/capture_core.hpp>

namespace sluice::detail {

template <GraphBackend B>
struct CaptureCore<B>::Entry {
    Entry(const KeyOps& keys, const void* of) : key(keys, of) {}
    KeptKey key;
    State state = State::warming;
    int warm = 0;                // Eager runs so far.
    bool compared = false;       // Once at least.
    std::int64_t to_compare = 0; // Comparisons that it still takes.
    bool quiet = false;          // Refused, as was known before.
    std::uint64_t used = 0;      // When, counted in runs of the cache.
    // Of this key; shared with the `Replay`s handed out.
    Shared<std::uint64_t> runs = make_shared_value<std::uint64_t>(std::uint64_t{0});
    Entry* next = nullptr; // Whose turn it was after this one the last time.
    // In this order: an executable goes before the graph that it was made from.
    Maybe<BasicGraph<B>> graph;
    Maybe<BasicGraphExec<B>> executable;
    std::vector<const void*> memory; // Device memory that the graph names; where checking is on.
    ReplayHooks<B> hooks;            // What the graph's work wants to be told of each launch.
    std::string reason;
};

template <GraphBackend B>
struct CaptureCore<B>::Running {
    explicit Running(CaptureCore& of) noexcept : core(of) { ++core.running_; }
    Running& operator=(Running&&) = delete;
    ~Running() {
        if (--core.running_ == 0 && std::exchange(core.cleared_, false))
            core.clear();
    }
    CaptureCore& core;
};

template <GraphBackend B>
CaptureCore<B>::CaptureCore(const GraphOptions& options, const KeyOps& keys)
    : keys_(keys), options_(options), device_(B::current_device()), allowance_(options.give_up_after) {
    require_options(options);
    entries_.reserve(most_known());
    options_.check = options.check.value_or(ObjectChecks<B>::on);
}

template <GraphBackend B>
CaptureCore<B>::~CaptureCore() = default;

template <GraphBackend B>
Replay CaptureCore<B>::launch(Entry& entry, Ref stream) {
    launch_entry(entry, stream);
    return Replay{entry.runs, true};
}

template <GraphBackend B>
bool CaptureCore<B>::is_new(const Entry& entry) const noexcept {
    return entry.to_compare > 0;
}

template <GraphBackend B>
Replay CaptureCore<B>::run(Ref stream, const void* key, Work work) {
    const auto eagerly = [&](bool warming) {
        const DeviceGuard<B> device(device_);
        if (warming)
            run_aside(stream, work);
        else
            work(stream);
    };
    return run_or(
        stream, key, work, eagerly, [] { return false; }, [] {});
}

template <GraphBackend B>
bool CaptureCore<B>::replay(Ref stream, const void* key, CallRef<void()> before_launch) {
    Entry* const found = find(key);
    if (found == nullptr || found->state != State::ready || *options_.check || is_new(*found) || capturing())
        return false;
    const Running running(*this);
    new_in_a_row_ = 0;
    before_launch();
    launch_entry(*found, stream);
    return true;
}

template <GraphBackend B>
void CaptureCore<B>::clear() noexcept {
    cleared_ = running_ > 0;
    if (cleared_)
        return;
    for (const Owned<Entry>& entry : entries_)
        *entry->runs = Replay::forgotten;
    entries_.clear();
    last_ = nullptr;
    new_in_a_row_ = 0;
    allowance_ = options_.give_up_after;
}

template <GraphBackend B>
Replay CaptureCore<B>::run_or(Ref stream, const void* key, Work work, CallRef<void(bool)> eagerly,
                              CallRef<bool()> is_warm, CallRef<void()> before_launch) {
    if (capturing()) {
        work(stream);
        return {};
    }
    const Running running(*this);
    Entry* const found = find(key);
    if (found != nullptr && found->state == State::ready) [[likely]] {
        if (*options_.check)
            check(*found, stream, work);
        else if (is_new(*found)) [[unlikely]]
            compare(*found, stream, work);
        if (found->state == State::ready) [[likely]] {
            new_in_a_row_ = 0;
            before_launch();
            return launch(*found, stream);
        }
    }

    require_same_device(stream, "GraphCapture::run", "the cache of graphs", device_);
    if (own_)
        B::throw_if_failed(own_->get());
    const auto run_eagerly = [&](Entry& entry, std::uint64_t& of_this_reason, bool warming = false) {
        entry.used = tick();
        ++*entry.runs;
        ++of_this_reason;
        Replay replay{entry.runs, false};
        eagerly(warming);
        return replay;
    };
    EagerRuns& eager = counters_.eager;
    const auto run_refused = [&](Entry& entry) {
        return run_eagerly(entry, entry.quiet ? eager.changed_slots : eager.refused);
    };
    if (found != nullptr && found->state == State::refused)
        return run_refused(*found);
    // Before the key is let in: it is none of its doing.
    throw_if_left_behind<B>("run");
    const bool is_new = found == nullptr;
    if (is_new && ++new_in_a_row_ == options_.give_up_after) {
        tell(whose_ + "capture refused: keys do not come again, the last " + std::to_string(new_in_a_row_) +
             " were all new: something that they tell, such as a number, a time or an address, is another "
             "one in each, or more than " +
             std::to_string(most_known()) +
             " keys come in turns, for which GraphOptions::capacity is too low");
    }
    Entry& entry = is_new ? admit(key) : *found;
    if (is_new && is_warm())
        entry.warm = options_.warmup;
    if (entry.warm < options_.warmup && !B::is_default_stream(stream.get())) {
        Replay replay = run_eagerly(entry, eager.first_runs, true);
        ++entry.warm; // Not where the work has thrown.
        return replay;
    }
    const Room room = find_room(entry, is_new);
    if (!room.is_there)
        return run_eagerly(entry, is_new ? eager.first_runs : eager.no_place);
    if (!SemaphoreWaits::instance().let_threads_catch_up()) { // Another time.
        if (is_new || room.instead_of != nullptr)
            ++allowance_;
        return run_eagerly(entry, eager.first_runs);
    }
    record(entry, stream, work, room.instead_of);
    if (entry.state != State::ready)
        return run_refused(entry);
    if (!is_new)
        new_in_a_row_ = 0;
    before_launch();
    return launch(entry, stream);
}

template <GraphBackend B>
Replay CaptureCore<B>::recapture(Ref stream, const void* key, Work work) {
    Entry* const entry = find(key);
    if (capturing() || entry == nullptr || entry->state != State::ready)
        return run(stream, key, work);
    const Running running(*this);
    throw_if_left_behind<B>("recapture");
    record(*entry, stream, work);
    if (entry->state == State::ready)
        return launch(*entry, stream);
    return run(stream, key, work); // It is refused, and runs eagerly.
}

template <GraphBackend B>
void CaptureCore<B>::launch_entry(Entry& entry, Ref stream) {
    for (const auto& hook : entry.hooks)
        hook->before_replay(entry.executable->get());
    entry.executable->launch(stream);
    entry.used = tick();
    ++*entry.runs;
    ++counters_.replays;
    for (const auto& hook : entry.hooks)
        hook->after_replay(stream);
}

template <GraphBackend B>
const BasicGraph<B>* CaptureCore<B>::graph(const void* key) const {
    const Entry* const entry = find(key);
    return entry != nullptr && entry->state == State::ready ? &*entry->graph : nullptr;
}

template <GraphBackend B>
const BasicGraphExec<B>* CaptureCore<B>::executable(const void* key) const {
    const Entry* const entry = find(key);
    return entry != nullptr && entry->state == State::ready ? &*entry->executable : nullptr;
}

template <GraphBackend B>
const std::string& CaptureCore<B>::refusal(const void* key) const {
    static const std::string none;
    const Entry* const entry = find(key);
    return entry != nullptr ? entry->reason : none;
}

template <GraphBackend B>
void CaptureCore<B>::run_aside(Ref stream, Work work) {
    const Ref side = own_stream(stream);
    using Library = typename ObjectChecks<B>::LibraryScope;
    {
        [[maybe_unused]] const Library library;
        fence_.record(stream);
        side.wait(fence_);
    }
    const auto join = [&] {
        [[maybe_unused]] const Library library;
        fence_.record(side);
        stream.wait(fence_);
    };
    try {
        work(side);
        join();
    } catch (...) {
        // What was enqueued until then still comes before the caller's later work; where events fail, by a
        // wait: the side stream is private, and what its work uses may be freed.
        if (!thrown_text(join).empty())
            (void)thrown_text([&] { side.sync(); });
        throw;
    }
}

template <GraphBackend B>
typename CaptureCore<B>::Ref CaptureCore<B>::own_stream(Ref like) {
    const StreamOptions options = options_like(like);
    if (!own_ || own_like_.priority != options.priority || own_like_.share != options.share) {
        own_.emplace(options);
        own_like_ = options;
    }
    return *own_;
}

template <GraphBackend B>
void CaptureCore<B>::tell(const std::string& reason) {
    ++counters_.refusals;
    if (first_refusal_.empty())
        first_refusal_ = reason;
    for (const std::string& earlier : told_) {
        if (earlier == reason)
            return;
    }
    if (told_.size() < most_told)
        told_.push_back(reason);
    if (options_.on_refusal != nullptr)
        options_.on_refusal(reason.c_str());
}

} // namespace sluice::detail

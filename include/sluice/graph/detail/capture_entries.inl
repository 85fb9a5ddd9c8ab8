// Bodies of capture_core.hpp: keys' entries, found, let in, captured, checked and refused.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/graph/detail/capture_core.hpp>

namespace sluice::detail {

template <GraphBackend B>
typename CaptureCore<B>::Entry* CaptureCore<B>::find(const void* key) {
    // Keys mostly come in the same order again and again.
    if (last_ != nullptr && last_->next != nullptr && last_->next->key.is(key))
        return last_ = last_->next;
    for (const Owned<Entry>& entry : entries_) {
        if (!entry->key.is(key))
            continue;
        if (last_ != nullptr)
            last_->next = entry.get();
        return last_ = entry.get();
    }
    return nullptr;
}

template <GraphBackend B>
const typename CaptureCore<B>::Entry* CaptureCore<B>::find(const void* key) const {
    for (const Owned<Entry>& entry : entries_) {
        if (entry->key.is(key))
            return entry.get();
    }
    return nullptr;
}

template <GraphBackend B>
typename CaptureCore<B>::Entry& CaptureCore<B>::admit(const void* key) {
    if (entries_.size() < most_known())
        return *entries_.emplace_back(make_owned<Entry>(keys_, key));
    // There are more entries than places for graphs.
    Entry* oldest = nullptr;
    for (const Owned<Entry>& entry : entries_) {
        if (!entry->executable && (oldest == nullptr || entry->used < oldest->used))
            oldest = entry.get();
    }
    // What may throw comes first.
    auto runs = make_shared_value<std::uint64_t>(std::uint64_t{0});
    KeptKey kept(keys_, key);
    oldest->key.swap(kept);
    *std::exchange(oldest->runs, std::move(runs)) = Replay::forgotten;
    oldest->state = State::warming;
    oldest->warm = 0;
    oldest->used = 0;
    forget_graph(*oldest);
    oldest->reason.clear();
    return *oldest;
}

template <GraphBackend B>
std::size_t CaptureCore<B>::size() const noexcept {
    std::size_t with_graph = 0;
    for (const Owned<Entry>& entry : entries_)
        with_graph += entry->executable ? std::size_t{1} : std::size_t{0};
    return with_graph;
}

// Whether the entry may be captured now: where there is room, and otherwise in the place of a graph that was not used since
// the entry's key came before. What it is not known to be good for is limited.
template <GraphBackend B>
typename CaptureCore<B>::Room CaptureCore<B>::find_room(const Entry& entry, bool is_new) {
    if (entry.executable)
        return {true};
    Entry* oldest = nullptr;
    std::size_t with_graph = 0;
    for (const Owned<Entry>& other : entries_) {
        if (!other->executable)
            continue;
        ++with_graph;
        if (oldest == nullptr || other->used < oldest->used)
            oldest = other.get();
    }
    const bool is_room = with_graph < options_.capacity;
    if (is_room && !is_new)
        return {true};
    const bool may_replace = !is_new && oldest != nullptr && oldest->used < entry.used;
    if ((is_room || may_replace) && settled()) {
        if (allowance_ > 0)
            --allowance_;
        return {true, is_room ? nullptr : oldest};
    }
    if (!is_new && counters_.eager.no_place == 0) {
        tell(whose_ + "capture refused: more keys come again than there are places for graphs, which are " +
             std::to_string(options_.capacity) + " (GraphOptions::capacity)");
    }
    return {};
}

template <GraphBackend B>
void CaptureCore<B>::forget_graph(Entry& entry) noexcept {
    entry.executable.reset();
    entry.graph.reset();
    entry.memory.clear();
    entry.hooks.clear();
    entry.to_compare = 0;
}

template <GraphBackend B>
void CaptureCore<B>::record(Entry& entry, Ref stream, Work work, Entry* instead_of) {
    const DeviceGuard<B> device(device_);
    // Until there is a new graph there is none, so that the next run tries again where the work throws.
    entry.state = State::warming;
    entry.warm = options_.warmup;
    entry.graph.reset();
    entry.hooks.clear();
    if (B::is_default_stream(stream.get())) {
        refuse(entry, "capture refused: the default stream cannot be captured; expected a stream of its own");
        return;
    }
    ReplayHooks<B> hooks;
    Refusal refusal;
    Maybe<BasicGraph<B>> graph = try_capture<B>(own_stream(stream), work, options_.capture, &hooks, refusal);
    if (!graph) {
        refuse(entry, "capture refused: " + refusal.reason, refusal.quiet);
        return;
    }
    ++counters_.captures;
    if (instead_of != nullptr) {
        entry.executable = std::move(instead_of->executable);
        forget_graph(*instead_of);
        instead_of->state = State::warming;
        ++counters_.evictions;
    }
    try {
        make_executable(entry, stream, std::move(*graph), std::move(hooks));
        entry.reason.clear();
        entry.compared = false;
        entry.to_compare = options_.comparisons;
        entry.state = State::ready;
    } catch (const Error& error) {
        refuse(entry, error.what());
    }
}

template <GraphBackend B>
void CaptureCore<B>::make_executable(Entry& entry, Ref stream, BasicGraph<B> graph, ReplayHooks<B> hooks) {
    bool may_update = true;
    for (const auto& hook : hooks)
        may_update = may_update && !hook->changes_nodes();
    if (entry.executable && may_update && entry.executable->update(graph)) {
        ++counters_.updates;
    } else {
        (void)SemaphoreWaits::instance().let_threads_catch_up(); // Of a change, which has to be taken now.
        entry.executable.emplace(graph);
        ++counters_.instantiations;
    }
    if (options_.upload)
        entry.executable->upload(stream);
    entry.graph = std::move(graph);
    if (*options_.check)
        entry.memory = B::device_pointers(entry.graph->get());
    entry.hooks = std::move(hooks);
}

// What has changed from one capture to the next; empty where nothing has.
template <GraphBackend B>
std::string CaptureCore<B>::change_of(const BasicGraph<B>& a, const ReplayHooks<B>& hooks_of_a,
                                      const BasicGraph<B>& b, const ReplayHooks<B>& hooks_of_b) {
    if (a.nodes() != b.nodes())
        return "from " + detail::counted(a.nodes(), "operation") + " to " + std::to_string(b.nodes());
    const auto own_memory = [](const ReplayHooks<B>& hooks) {
        std::vector<const void*> own;
        for (const auto& hook : hooks)
            hook->append_own_memory(own);
        return own;
    };
    const std::vector<const void*> own_of_a = own_memory(hooks_of_a), own_of_b = own_memory(hooks_of_b);
    if (B::signature(a.get(), own_of_a) == B::signature(b.get(), own_of_b))
        return {};
    if constexpr (requires { B::difference(a.get(), own_of_a, b.get(), own_of_b); })
        return "in " + B::difference(a.get(), own_of_a, b.get(), own_of_b);
    else
        return "in the shape or the arguments of an operation";
}

// The work is called once, as it would be in an eager run: what it has handed to the capture is what gets launched.
template <GraphBackend B>
void CaptureCore<B>::compare(Entry& entry, Ref stream, Work work) {
    const DeviceGuard<B> device(device_);
    throw_if_left_behind<B>("run");
    --entry.to_compare;
    const bool is_first = !std::exchange(entry.compared, true);
    ReplayHooks<B> hooks;
    Refusal refusal;
    Maybe<BasicGraph<B>> now = try_capture<B>(own_stream(stream), work, options_.capture, &hooks, refusal);
    if (!now) {
        refuse(entry, "capture refused: " + refusal.reason, refusal.quiet);
        return;
    }
    ++counters_.comparisons;
    const std::string change = change_of(*entry.graph, entry.hooks, *now, hooks);
    if (change.empty())
        return;
    ++counters_.changes;
    counters_.later_changes += is_first ? 0U : 1U;
    entry.to_compare = std::int64_t{4} * options_.comparisons;
    if (first_refusal_.empty())
        first_refusal_ = "the work under a key has changed since it was captured, " + change;
    try {
        make_executable(entry, stream, std::move(*now), std::move(hooks));
    } catch (const Error& error) {
        refuse(entry, error.what());
    }
}

template <GraphBackend B>
void CaptureCore<B>::check(Entry& entry, Ref stream, Work work) {
    const DeviceGuard<B> device(device_);
    throw_if_left_behind<B>("run");
    for (const void* const pointer : entry.memory) {
        if (!B::is_device_memory(pointer))
            throw Error("replay refused: the graph uses device memory that has been freed since it was "
                        "captured; buffers must outlive the graphs that use them");
    }
    ReplayHooks<B> hooks;
    Refusal refusal;
    const Maybe<BasicGraph<B>> now =
        try_capture<B>(own_stream(stream), work, options_.capture, &hooks, refusal);
    if (!now)
        throw Error(
            "replay refused: the work under this key, captured again to be compared with its graph, was "
            "refused: " +
            refusal.reason);
    const std::string change = change_of(*entry.graph, entry.hooks, *now, hooks);
    if (!change.empty()) {
        throw Error("replay refused: the work under this key has changed since it was captured, " + change +
                    "; give other work another key, in a pipeline by what the batch holds or its graph_key, "
                    "or call recapture");
    }
}

template <GraphBackend B>
void CaptureCore<B>::refuse(Entry& entry, const std::string& reason, bool quiet) {
    entry.state = State::refused;
    forget_graph(entry);
    entry.quiet = quiet;
    entry.reason = reason;
    if (first_refusal_.empty())
        first_refusal_ = reason;
    if (!quiet)
        tell(entry.reason);
}

} // namespace sluice::detail

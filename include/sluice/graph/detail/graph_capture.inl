// Bodies of graph_capture.hpp.
#pragma once

namespace sluice {

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
GraphCapture<Key, B>::GraphCapture(const GraphOptions& options)
    : options_(options), device_(B::current_device()) {
    if (options.capacity == 0)
        throw Error("a GraphCapture needs a capacity of at least 1 executable, got 0");
    if (options.warmup < 0)
        throw Error("a GraphCapture needs a warm-up of at least 0 runs, got " +
                    std::to_string(options.warmup));
    entries_.reserve(options.capacity);
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <class F, class Eager, class IsWarm, class BeforeLaunch>
Replay GraphCapture<Key, B>::run_fitting(Ref stream, const Key& key, F& work, Eager&& eagerly,
                                         IsWarm&& is_warm, BeforeLaunch&& before_launch) {
    if (capturing()) {
        work(stream);
        return {};
    }
    Entry* const found = find(key);
    if (found != nullptr && found->state == State::ready) [[likely]] {
        if (options_.check)
            check(*found, stream, work);
        unsettled_ = 0; // It has come again.
        before_launch();
        return launch(*found, stream);
    }

    if (own_)
        B::throw_if_failed(own_->get());
    if (found == nullptr && !settled()) {
        eagerly(false);
        return {};
    }
    const auto run_eagerly = [&](Entry& entry, bool warming) {
        entry.used = ++clock_;
        ++*entry.runs;
        Replay replay{entry.runs, false};
        eagerly(warming);
        return replay;
    };
    if (found != nullptr && found->state == State::refused)
        return run_eagerly(*found, false);
    // Before the key is let in: it is none of its doing.
    detail::throw_if_left_behind<B>("run");
    if (found == nullptr && ++unsettled_ == options_.give_up_after) {
        tell("capture refused: keys do not come again, the last ones were all new; further ones run eagerly "
             "and are "
             "not kept");
    }
    Entry& entry = found != nullptr ? *found : admit(key);
    if (found == nullptr && is_warm())
        entry.warm = options_.warmup;
    if (entry.warm < options_.warmup && !B::is_default_stream(stream.get())) {
        Replay replay = run_eagerly(entry, true);
        ++entry.warm; // Not where the work has thrown.
        return replay;
    }
    record(entry, stream, work);
    if (entry.state != State::ready)
        return run_eagerly(entry, false);
    if (found != nullptr)
        unsettled_ = 0;
    before_launch();
    return launch(entry, stream);
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <class F>
Replay GraphCapture<Key, B>::recapture_fitting(Ref stream, const Key& key, F& work) {
    Entry* const entry = find(key);
    if (capturing() || entry == nullptr || entry->state != State::ready)
        return run(stream, key, work);
    detail::throw_if_left_behind<B>("recapture");
    record(*entry, stream, work);
    if (entry->state == State::ready)
        return launch(*entry, stream);
    return run(stream, key, work); // It is refused, and runs eagerly.
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
void GraphCapture<Key, B>::launch_entry(Entry& entry, Ref stream) {
    for (const auto& hook : entry.hooks)
        hook->before_replay();
    entry.executable->launch(stream);
    entry.used = ++clock_;
    ++*entry.runs;
    ++counters_.replays;
    for (const auto& hook : entry.hooks)
        hook->after_replay(stream);
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
const BasicGraph<B>* GraphCapture<Key, B>::graph(const Key& key) const noexcept {
    const Entry* const entry = find(key);
    return entry != nullptr && entry->state == State::ready ? &*entry->graph : nullptr;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
const BasicGraphExec<B>* GraphCapture<Key, B>::executable(const Key& key) const noexcept {
    const Entry* const entry = find(key);
    return entry != nullptr && entry->state == State::ready ? &*entry->executable : nullptr;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
const std::string& GraphCapture<Key, B>::refusal(const Key& key) const noexcept {
    static const std::string none;
    const Entry* const entry = find(key);
    return entry != nullptr ? entry->reason : none;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
typename GraphCapture<Key, B>::Entry* GraphCapture<Key, B>::find(const Key& key) noexcept {
    // Keys mostly come in the same order again and again.
    if (last_ != nullptr && last_->next != nullptr && last_->next->key == key)
        return last_ = last_->next;
    for (const std::unique_ptr<Entry>& entry : entries_) {
        if (!(entry->key == key))
            continue;
        if (last_ != nullptr)
            last_->next = entry.get();
        return last_ = entry.get();
    }
    return nullptr;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
const typename GraphCapture<Key, B>::Entry* GraphCapture<Key, B>::find(const Key& key) const noexcept {
    for (const std::unique_ptr<Entry>& entry : entries_) {
        if (entry->key == key)
            return entry.get();
    }
    return nullptr;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
typename GraphCapture<Key, B>::Entry& GraphCapture<Key, B>::admit(const Key& key) {
    if (entries_.size() < options_.capacity)
        return *entries_.emplace_back(std::make_unique<Entry>(key));
    Entry* oldest = entries_.front().get();
    for (const std::unique_ptr<Entry>& entry : entries_) {
        if (entry->used < oldest->used)
            oldest = entry.get();
    }
    // The executable stays: the new graph may go into it. What may throw comes first.
    auto runs = std::make_shared<std::uint64_t>(0);
    oldest->key = key;
    *std::exchange(oldest->runs, std::move(runs)) = Replay::forgotten;
    oldest->state = State::warming;
    oldest->warm = 0;
    oldest->graph.reset();
    oldest->memory.clear();
    oldest->hooks.clear();
    oldest->reason.clear();
    ++counters_.evictions;
    return *oldest;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <class F>
void GraphCapture<Key, B>::record(Entry& entry, Ref stream, F& work) {
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
    detail::ReplayHooks<B> hooks;
    detail::Refusal refusal;
    std::optional<BasicGraph<B>> graph =
        detail::try_capture<B>(own_stream(stream), work, options_.capture, &hooks, refusal);
    if (!graph) {
        refuse(entry, "capture refused: " + refusal.reason, refusal.quiet);
        return;
    }
    ++counters_.captures;
    try {
        if (entry.executable && entry.executable->update(*graph)) {
            ++counters_.updates;
        } else {
            entry.executable.emplace(*graph);
            ++counters_.instantiations;
        }
        if (options_.upload)
            entry.executable->upload(stream);
        entry.graph = std::move(graph);
        if (options_.check)
            entry.memory = B::device_pointers(entry.graph->get());
        entry.hooks = std::move(hooks);
        entry.reason.clear();
        entry.state = State::ready;
    } catch (const Error& error) {
        refuse(entry, error.what());
    }
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <class F>
void GraphCapture<Key, B>::check(Entry& entry, Ref stream, F& work) {
    const DeviceGuard<B> device(device_);
    detail::throw_if_left_behind<B>("run");
    for (const void* const pointer : entry.memory) {
        if (!B::is_device_memory(pointer))
            throw Error(
                "replay refused: the graph uses device memory that has been freed since it was captured; "
                "buffers must outlive the graphs that use them");
    }
    detail::ReplayHooks<B> unused;
    detail::Refusal refusal;
    const std::optional<BasicGraph<B>> now =
        detail::try_capture<B>(own_stream(stream), work, options_.capture, &unused, refusal);
    if (!now)
        throw Error("capture refused: " + refusal.reason);
    if (now->nodes() != entry.graph->nodes()) {
        throw Error("replay refused: the work under this key has changed since it was captured, from " +
                    std::to_string(entry.graph->nodes()) + " operations to " + std::to_string(now->nodes()) +
                    "; give other work another key, or call recapture");
    }
    if (B::signature(now->get()) != B::signature(entry.graph->get())) {
        throw Error(
            "replay refused: the work under this key has changed since it was captured, in the shape or the "
            "arguments of an operation; give other work another key, or call recapture");
    }
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <class F>
void GraphCapture<Key, B>::run_aside(Ref stream, F& work) {
    const Ref side = own_stream(stream);
    fence_.record(stream);
    side.wait(fence_);
    const auto join = [&] {
        fence_.record(side);
        stream.wait(fence_);
    };
    try {
        work(side);
        join();
    } catch (...) {
        // What was enqueued until then still comes before the caller's later work; where events fail, by a
        // wait: nobody else knows of the side stream, and what its work uses may go.
        if (!detail::thrown_text(join).empty())
            (void)detail::thrown_text([&] { side.sync(); });
        throw;
    }
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
typename GraphCapture<Key, B>::Ref GraphCapture<Key, B>::own_stream(Ref like) {
    const int priority = like.priority();
    if (!own_ || own_priority_ != priority) {
        own_.emplace(StreamOptions{.priority = priority});
        own_priority_ = priority;
    }
    return *own_;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
void GraphCapture<Key, B>::refuse(Entry& entry, const std::string& reason, bool quiet) {
    entry.state = State::refused;
    entry.executable.reset();
    entry.graph.reset();
    entry.memory.clear();
    entry.hooks.clear();
    entry.reason = reason;
    if (!quiet)
        tell(entry.reason.c_str());
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
void GraphCapture<Key, B>::tell(const char* reason) {
    ++counters_.refusals;
    if (options_.on_refusal != nullptr)
        options_.on_refusal(reason);
}

} // namespace sluice

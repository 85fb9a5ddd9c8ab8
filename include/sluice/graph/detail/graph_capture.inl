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
template <class F>
Replay GraphCapture<Key, B>::run_fitting(Ref stream, const Key& key, F& work) {
    if (capturing()) {
        work(stream);
        return {};
    }
    Entry* const found = find(key);
    if (found != nullptr && found->state == State::ready) [[likely]] {
        if (options_.check)
            check(*found, stream, work);
        found->executable->launch(stream);
        found->used = ++clock_;
        ++found->runs;
        ++counters_.replays;
        unsettled_ = 0;
        return Replay{&found->runs, true};
    }

    const DeviceGuard<B> device(device_);
    if (side_)
        B::throw_if_failed(side_->native());
    if (found == nullptr) {
        if (!settled()) {
            work(stream);
            return {};
        }
        if (++unsettled_ == options_.give_up_after)
            tell("capture refused: keys do not come again, the last ones were all new; further ones are not "
                 "captured");
    }
    Entry& entry = found != nullptr ? *found : admit(key);
    entry.used = ++clock_;
    ++entry.runs;
    if (entry.state == State::refused) {
        work(stream);
        return Replay{&entry.runs, false};
    }
    if (B::is_default_stream(stream.native())) {
        refuse(entry, "capture refused: the default stream cannot be captured; expected a stream of its own");
        work(stream);
        return Replay{&entry.runs, false};
    }
    if (const std::string stale = detail::thrown_text([] { B::check_launches(); }); !stale.empty()) {
        // Nothing of this work's doing: it is captured the next time.
        const std::string reason = "capture refused: an earlier call had left an error behind: " + stale;
        entry.reason = reason;
        tell(reason.c_str());
        work(stream);
        return Replay{&entry.runs, false};
    }
    if (entry.warm < options_.warmup) {
        run_aside(stream, work);
        if (++entry.warm == options_.warmup)
            record(entry, stream, work);
        return Replay{&entry.runs, false};
    }
    record(entry, stream, work);
    if (entry.state != State::ready) {
        work(stream);
        return Replay{&entry.runs, false};
    }
    entry.executable->launch(stream);
    ++counters_.replays;
    return Replay{&entry.runs, true};
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <class F>
Replay GraphCapture<Key, B>::recapture_fitting(Ref stream, const Key& key, F& work) {
    Entry* const entry = find(key);
    if (capturing() || entry == nullptr || entry->state != State::ready)
        return run_fitting(stream, key, work);
    const DeviceGuard<B> device(device_);
    entry->used = ++clock_;
    ++entry->runs;
    record(*entry, stream, work);
    if (entry->state != State::ready) {
        work(stream);
        return Replay{&entry->runs, false};
    }
    entry->executable->launch(stream);
    ++counters_.replays;
    return Replay{&entry->runs, true};
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
const BasicGraph<B>* GraphCapture<Key, B>::graph(const Key& key) const noexcept {
    const Entry* const entry = find(key);
    return entry != nullptr && entry->state == State::ready ? &*entry->graph : nullptr;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
const BasicExecutable<B>* GraphCapture<Key, B>::executable(const Key& key) const noexcept {
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
    // The executable stays: the new graph may go into it.
    oldest->key = key;
    oldest->state = State::warming;
    oldest->warm = 0;
    oldest->graph.reset();
    oldest->memory.clear();
    oldest->reason.clear();
    ++counters_.evictions;
    return *oldest;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <class F>
void GraphCapture<Key, B>::record(Entry& entry, Ref stream, F& work) {
    try {
        BasicGraph<B> graph = sluice::capture(stream, work, options_.capture);
        ++counters_.captures;
        if (entry.executable && entry.executable->update(graph)) {
            ++counters_.updates;
        } else {
            entry.executable.emplace(graph);
            ++counters_.instantiations;
        }
        if (options_.upload)
            entry.executable->upload(stream);
        entry.graph = std::move(graph);
        if (options_.check)
            entry.memory = B::device_pointers(entry.graph->native());
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
    for (const void* const pointer : entry.memory) {
        if (!B::is_device_memory(pointer))
            throw Error(
                "replay refused: the graph uses device memory that has been freed since it was captured; "
                "buffers must outlive the graphs that use them");
    }
    const BasicGraph<B> now = sluice::capture(stream, work, options_.capture);
    if (now.nodes() != entry.graph->nodes()) {
        throw Error("replay refused: the work under this key has changed since it was captured, from " +
                    std::to_string(entry.graph->nodes()) + " operations to " + std::to_string(now.nodes()) +
                    "; give other work another key, or call recapture");
    }
    if (B::signature(now.native()) != B::signature(entry.graph->native())) {
        throw Error(
            "replay refused: the work under this key has changed since it was captured, in the shape or the "
            "arguments of an operation; give other work another key, or call recapture");
    }
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <class F>
void GraphCapture<Key, B>::run_aside(Ref stream, F& work) {
    const int priority = stream.priority();
    if (!side_ || side_priority_ != priority) {
        side_.emplace(StreamOptions{.priority = priority});
        side_priority_ = priority;
    }
    fence_.record(stream);
    side_->wait(fence_);
    const auto join = [&] {
        fence_.record(*side_);
        stream.wait(fence_);
    };
    try {
        work(side_->ref());
        join();
    } catch (...) {
        // What was enqueued until then still comes before the caller's later work; where events fail, by a
        // wait: nobody else knows of the side stream, and what its work uses may go.
        if (!detail::thrown_text(join).empty())
            (void)detail::thrown_text([&] { side_->synchronize(); });
        throw;
    }
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
void GraphCapture<Key, B>::refuse(Entry& entry, const char* reason) {
    entry.state = State::refused;
    entry.executable.reset();
    entry.graph.reset();
    entry.reason = reason;
    tell(reason);
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
void GraphCapture<Key, B>::tell(const char* reason) {
    ++counters_.refusals;
    if (options_.on_refusal != nullptr)
        options_.on_refusal(reason);
}

} // namespace sluice

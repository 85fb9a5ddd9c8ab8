// The bodies of graph_capture.hpp: runs. Those that look after the cache are in graph_capture_entries.inl.
#pragma once

#include <cstdio>
#include <string>

#include <sluice/backend/detail/checked/object_checks.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/graph/graph_capture.hpp>

namespace sluice {

#if SLUICE_HAS_COMMON_BODIES
SLUICE_BODY void print_refusal(const char* reason) {
    (void)std::fprintf(stderr, "sluice: %s; the work runs eagerly\n", reason);
}

SLUICE_BODY EagerRuns& EagerRuns::operator+=(const EagerRuns& other) noexcept {
    first_runs += other.first_runs;
    no_place += other.no_place;
    refused += other.refused;
    changed_slots += other.changed_slots;
    untold += other.untold;
    ends += other.ends;
    opted_out += other.opted_out;
    blocking += other.blocking;
    return *this;
}

SLUICE_BODY GraphCounters& GraphCounters::operator+=(const GraphCounters& other) noexcept {
    captures += other.captures;
    instantiations += other.instantiations;
    updates += other.updates;
    replays += other.replays;
    evictions += other.evictions;
    refusals += other.refusals;
    comparisons += other.comparisons;
    changes += other.changes;
    eager += other.eager;
    return *this;
}

SLUICE_BODY void detail::require_options(const GraphOptions& options) {
    if (options.capacity < 1 || options.capacity > std::size_t{1} << 20) {
        throw Error("a GraphCapture needs a capacity of 1 to 1048576 executables, got " +
                    std::to_string(options.capacity));
    }
    if (options.warmup < 0)
        throw Error("a GraphCapture needs a warm-up of at least 0 runs, got " +
                    std::to_string(options.warmup));
    if (options.comparisons < 0)
        throw Error("a GraphCapture needs 0 comparisons or more, got " + std::to_string(options.comparisons));
    require_capture_mode(options.capture);
}

SLUICE_BODY void Replay::require_current() const {
    if (is_current())
        return;
    if (*runs_ == forgotten) {
        throw Error(
            "whether the outputs of this run have been overwritten is unknown: its key has left the cache "
            "since; ask before, or make the GraphCapture's capacity larger");
    }
    throw Error("the outputs of this run have been overwritten by a later run of the same key; copy them "
                "before, or give each run in flight a key and outputs of its own");
}
#endif

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
GraphCapture<Key, B>::GraphCapture(const GraphOptions& options)
    : options_(options), device_(B::current_device()), allowance_(options.give_up_after) {
    detail::require_options(options);
    entries_.reserve(most_known());
    options_.check = options.check.value_or(detail::ObjectChecks<B>::on);
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <class F>
inline Replay GraphCapture<Key, B>::run(Ref stream, const Key& key, F&& work) {
    if constexpr (detail::check_work<B, F>()) {
        detail::require_callable("GraphCapture: the work", work);
        const auto eagerly = [&](bool warming) {
            const DeviceGuard<B> device(device_);
            if (warming)
                run_aside(stream, work);
            else
                work(stream);
        };
        return run_fitting(
            stream, key, work, eagerly, [] { return false; }, [] {});
    } else {
        return {};
    }
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <class F, std::invocable<> Eager, std::predicate<> IsWarm, std::invocable<> BeforeLaunch>
inline Replay GraphCapture<Key, B>::run_or(Ref stream, const Key& key, F&& work, Eager&& eager,
                                           IsWarm&& is_warm, BeforeLaunch&& before_launch) {
    if constexpr (detail::check_work<B, F>()) {
        detail::require_callable("GraphCapture: the work", work);
        detail::require_callable("GraphCapture: the eager work", eager);
        detail::require_callable("GraphCapture: is_warm", is_warm);
        detail::require_callable("GraphCapture: before_launch", before_launch);
        return run_fitting(
            stream, key, work, [&](bool) { eager(); }, is_warm, before_launch);
    } else {
        return {};
    }
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <std::invocable<> BeforeLaunch>
inline bool GraphCapture<Key, B>::replay(Ref stream, const Key& key, BeforeLaunch&& before_launch) {
    detail::require_callable("GraphCapture: before_launch", before_launch);
    Entry* const found = find(key);
    if (found == nullptr || found->state != State::ready || *options_.check || is_new(*found) || capturing())
        return false;
    new_in_a_row_ = 0;
    before_launch();
    launch_entry(*found, stream);
    return true;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
template <class F>
inline Replay GraphCapture<Key, B>::recapture(Ref stream, const Key& key, F&& work) {
    if constexpr (detail::check_work<B, F>()) {
        detail::require_callable("GraphCapture: the work", work);
        return recapture_fitting(stream, key, work);
    } else {
        return {};
    }
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
void GraphCapture<Key, B>::clear() noexcept {
    for (const detail::Owned<Entry>& entry : entries_)
        *entry->runs = Replay::forgotten;
    entries_.clear();
    last_ = nullptr;
    new_in_a_row_ = 0;
    allowance_ = options_.give_up_after;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B> Replay
GraphCapture<Key, B>::run_fitting(Ref stream, const Key& key, Work work, detail::CallRef<void(bool)> eagerly,
                                  detail::CallRef<bool()> is_warm, detail::CallRef<void()> before_launch) {
    if (capturing()) {
        work(stream);
        return {};
    }
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

    detail::require_same_device(stream, "GraphCapture::run", "the cache of graphs", device_);
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
    detail::throw_if_left_behind<B>("run");
    const bool is_new = found == nullptr;
    if (is_new && ++new_in_a_row_ == options_.give_up_after) {
        tell(
            "capture refused: keys do not come again, the last " + std::to_string(new_in_a_row_) +
            " were all new: something that they tell, such as a number, a time or an address, is another one "
            "in each");
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
    record(entry, stream, work, room.instead_of);
    if (entry.state != State::ready)
        return run_refused(entry);
    if (!is_new)
        new_in_a_row_ = 0;
    before_launch();
    return launch(entry, stream);
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
    Replay GraphCapture<Key, B>::recapture_fitting(Ref stream, const Key& key, Work work) {
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
        hook->before_replay(entry.executable->get());
    entry.executable->launch(stream);
    entry.used = tick();
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
void GraphCapture<Key, B>::run_aside(Ref stream, Work work) {
    const Ref side = own_stream(stream);
    using Library = typename detail::ObjectChecks<B>::LibraryScope;
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
        if (!detail::thrown_text(join).empty())
            (void)detail::thrown_text([&] { side.sync(); });
        throw;
    }
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
typename GraphCapture<Key, B>::Ref GraphCapture<Key, B>::own_stream(Ref like) {
    const StreamOptions options = detail::options_like(like);
    if (!own_ || own_like_.priority != options.priority || own_like_.share != options.share) {
        own_.emplace(options);
        own_like_ = options;
    }
    return *own_;
}

template <class Key, Backend B>
requires std::equality_comparable<Key> && GraphBackend<B>
void GraphCapture<Key, B>::tell(const std::string& reason) {
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

} // namespace sluice

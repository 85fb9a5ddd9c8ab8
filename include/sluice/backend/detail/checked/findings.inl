// Bodies of findings.hpp, and of what makes findings.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <sluice/backend/detail/checked/state.hpp>

namespace sluice::detail::checked {

inline const char* name_of(Op op) noexcept {
    constexpr const char* names[] = {"copy",          "fill",     "its slot",         "its batch",
                                     "declared",      "host",     "allocation",       "free",
                                     "source's fill", "readback", "operation on rows"};
    return names[static_cast<std::size_t>(op)];
}

inline const char* name_of(sluice::checked::Mistake mistake) noexcept {
    constexpr const char* names[] = {"race",           "race with the host",
                                     "use after free", "uninitialized read",
                                     "default stream", "unnecessary wait"};
    return names[static_cast<std::size_t>(mistake)];
}

inline std::string words_of(const sluice::checked::Access& access) {
    std::string words;
    if (access.stage.empty() && access.stream == host_name) {
        words = access.stream;
        return access.operation.empty() || access.operation == name_of(Op::host)
                   ? words
                   : words + " (" + access.operation + ")";
    }
    if (!access.stage.empty()) {
        words = "stage '" + access.stage + "'";
        if (access.batch)
            words += ", batch " + std::to_string(*access.batch);
    }
    if (!access.operation.empty() || words.empty()) {
        const std::string on = (access.operation.empty() ? "" : access.operation + ", ") + access.stream;
        words += words.empty() ? on : " (" + on + ")";
    }
    return words;
}

inline std::string node_name(std::uint32_t node) { return "node " + std::to_string(node - 1); }

SLUICE_BODY std::string Checker::stream_name(ActorId id) {
    const Actor& of = actors_[id];
    if (!of.name.empty())
        return of.name;
    return of.default_stream ? "the default stream" : "stream " + std::to_string(of.number);
}

SLUICE_BODY sluice::checked::Access Checker::access_of(const Record& record) {
    sluice::checked::Access access;
    access.writes = record.writes;
    access.operation = record.doer.what != nullptr ? record.doer.what : name_of(record.doer.op);
    const std::optional<ActorId> launcher = actors_[record.stamp.actor].launcher;
    access.stream = launcher && record.doer.node != 0
                        ? node_name(record.doer.node) + " of a graph on " + stream_name(*launcher)
                        : stream_name(record.stamp.actor);
    if (record.doer.stage != 0) {
        access.stage = labels[record.doer.stage];
        access.batch = static_cast<std::size_t>(record.doer.batch);
    }
    return access;
}

// Of an access of bytes of a block.
SLUICE_BODY sluice::checked::Finding Checker::finding_of(sluice::checked::Mistake mistake, const Block& block,
                                                         const Record& access) {
    sluice::checked::Finding finding{.mistake = mistake, .second = access_of(access)};
    finding.buffer = buffer_name(block, access.begin, access.end);
    finding.address = reinterpret_cast<const void*>(access.begin);
    finding.bytes = access.end - access.begin;
    return finding;
}

// What a destructor met at the end of a program, with no call after it.
SLUICE_BODY void print_unthrown() {
    const Locked checker;
    if (checker->pending)
        std::fprintf(stderr, "sluice: no call was left to throw this: %s\n", checker->pending->what());
}

SLUICE_BODY void Checker::note(sluice::checked::Finding finding, bool may_throw, std::string kind) {
    using sluice::checked::Mistake;
    std::string& text = finding.message;
    // Who frees does nothing else.
    sluice::checked::Access freer = finding.second;
    const bool is_free = freer.operation == name_of(Op::free);
    if (is_free)
        freer.operation.clear();
    const char* const frees = is_free ? " frees it while " : " comes while ";
    const auto verb = [](const sluice::checked::Access& access) {
        return access.writes ? " writes" : " reads";
    };
    // Of a batch that is held, all has been said.
    switch (text.empty() ? finding.mistake : Mistake::unnecessary_wait) {
    case Mistake::race:
    case Mistake::host_race:
        text = std::string(name_of(finding.mistake)) + " on " + finding.buffer + ": " +
               words_of(finding.second) + verb(finding.second) + " it while " + words_of(finding.first) +
               " may still be " + (finding.first.writes ? "writing" : "reading") +
               " it, and nothing orders the two. Missing edge: " + finding.missing_edge;
        break;
    case Mistake::use_after_free:
        text = "use after free of " + finding.buffer + ": ";
        if (finding.missing_edge.empty())
            text += words_of(finding.second) + verb(finding.second) + " memory that has been freed";
        else
            text += words_of(freer) + frees + words_of(finding.first) + " may still be " +
                    (finding.first.writes ? "writing" : "reading") +
                    " it. Missing edge: " + finding.missing_edge;
        break;
    case Mistake::uninitialized_read:
        text = "uninitialized read of " + finding.buffer + ": " + words_of(finding.second) +
               " reads device memory that nothing has written";
        break;
    case Mistake::default_stream:
        text = words_of(finding.second) +
               " enqueues work on the legacy default stream, which waits for all other streams and they for "
               "it; use the stream that the stage is handed";
        break;
    case Mistake::unnecessary_wait:
        break;
    }
    finding.first.latest_batch = finding.first.batch;
    finding.second.latest_batch = finding.second.batch;
    const Error error(text);
    bool known = false;
    const bool of_maker = kind.starts_with("the slot maker");
    if (kind.empty())
        kind = finding.buffer;
    for (std::size_t i = 0; i < mistakes.size(); ++i) {
        sluice::checked::Finding& other = mistakes[i];
        if (other.mistake == finding.mistake && kinds[i] == kind &&
            (of_maker ||
             (other.first.stage == finding.first.stage && other.second.stage == finding.second.stage &&
              other.first.operation == finding.first.operation &&
              other.second.operation == finding.second.operation))) {
            ++other.count;
            other.first.latest_batch = finding.first.batch;
            other.second.latest_batch = finding.second.batch;
            known = true;
            break;
        }
    }
    if (!known && mistakes.size() < 256) {
        mistakes.push_back(std::move(finding));
        kinds.push_back(std::move(kind));
    }
    if (!throws)
        return;
    if (may_throw && !QuietScope::active())
        throw error;
    throw_later(error);
}

SLUICE_BODY void Checker::throw_later(const Error& error) {
    if (pending)
        return;
    pending = error;
    static const int registered = std::atexit(print_unthrown);
    (void)registered;
}

SLUICE_BODY void throw_pending() { Locked()->throw_pending(); }

SLUICE_BODY void not_thrown(const std::exception_ptr& thrown) noexcept {
    const Locked checker;
    try {
        std::rethrow_exception(thrown);
    } catch (const Error& error) {
        const std::string_view text = error.what(); // with the stage, or without
        for (const sluice::checked::Finding& finding : checker->mistakes) {
            if (text.ends_with(finding.message))
                return checker->throw_later(error);
        }
    } catch (...) {
    }
}

// Waits that sluice makes itself are its own business.
SLUICE_BODY void Checker::count_wait(const Stamp& from, Actor& to, std::size_t again, bool useful) {
    if (InternalScope::depth() > 0)
        return;
    StageScope* const stage = StageScope::current();
    const std::uint32_t label = stage == nullptr ? 0 : stage->label;
    const std::size_t place = stage == nullptr ? again : stage->waits++;
    for (WaitCount& count : waits) {
        if (count.stage == label && count.place == place && count.from == from.actor && count.to == to.id) {
            ++count.waits;
            count.useful += useful ? 1 : 0;
            return;
        }
    }
    if (waits.size() < 256)
        waits.push_back({label, place, from.actor, to.id, 1, useful ? std::size_t{1} : 0});
}

SLUICE_BODY std::vector<sluice::checked::Finding> Checker::all_findings() {
    std::vector<sluice::checked::Finding> all = mistakes;
    for (const WaitCount& count : waits) {
        if (count.useful > 0)
            continue;
        sluice::checked::Finding finding{.mistake = sluice::checked::Mistake::unnecessary_wait};
        finding.first.stream = stream_name(count.from);
        finding.second.stream = stream_name(count.to);
        finding.second.stage = labels[count.stage];
        finding.second.operation = "wait";
        finding.count = count.waits;
        finding.message = "unnecessary wait: " + words_of(finding.second) + " waits for an event of " +
                          finding.first.stream + ", and what it stands for was ordered before each of the " +
                          std::to_string(count.waits) + " times";
        all.push_back(std::move(finding));
    }
    return all;
}

SLUICE_BODY std::uint32_t Checker::label_of(const std::string& name) {
    for (std::size_t label = 1; label < labels.size(); ++label) {
        if (labels[label] == name)
            return static_cast<std::uint32_t>(label);
    }
    labels.push_back(name);
    return static_cast<std::uint32_t>(labels.size() - 1);
}

} // namespace sluice::detail::checked

namespace sluice::checked {

SLUICE_BODY std::vector<Finding> findings() {
    detail::checked::Locked checker;
    checker->look_at_suspects(false);
    return checker->all_findings();
}

SLUICE_BODY std::string report() {
    std::string text;
    for (const Finding& finding : findings()) {
        text += finding.message;
        if (finding.count > 1 && finding.mistake != Mistake::unnecessary_wait)
            text += " (" + std::to_string(finding.count) + " times)";
        text += "\n";
    }
    return text;
}

SLUICE_BODY void forget() {
    detail::checked::Locked checker;
    checker->mistakes.clear();
    checker->kinds.clear();
    checker->pending.reset();
    checker->waits.clear();
}

SLUICE_BODY bool throw_mistakes(bool throws) {
    return std::exchange(detail::checked::Locked()->throws, throws);
}

SLUICE_BODY void synced() {
    detail::checked::Locked checker;
    detail::checked::Actor& host = checker->doer();
    for (const auto& [key, id] : checker->streams)
        (void)host.learn(checker->actor(id).stamp());
}

} // namespace sluice::checked

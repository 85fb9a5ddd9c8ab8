// Bodies of findings.hpp, and of what makes findings.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <sluice/backend/detail/checked/held.inl>
#include <sluice/backend/detail/checked/state.hpp>

namespace sluice::detail::checked {

inline const char* name_of(Op op) noexcept {
    switch (op) {
    case Op::copy:
        return "copy";
    case Op::fill:
        return "fill";
    case Op::slot:
        return "its slot";
    case Op::batch:
        return "its batch";
    case Op::declared:
        return "declared";
    case Op::host:
        return "host";
    case Op::allocation:
        return "allocation";
    case Op::free:
        return "free";
    case Op::fill_batch:
        return "source's fill";
    case Op::result:
        return "readback";
    case Op::rows:
        return "operation on rows";
    }
    return "";
}

inline const char* name_of(sluice::checked::Mistake mistake) noexcept {
    using sluice::checked::Mistake;
    switch (mistake) {
    case Mistake::race:
        return "race";
    case Mistake::host_race:
        return "race with the host";
    case Mistake::use_after_free:
        return "use after free";
    case Mistake::uninitialized_read:
        return "uninitialized read";
    case Mistake::default_stream:
        return "default stream";
    case Mistake::unnecessary_wait:
        return "unnecessary wait";
    }
    return "";
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
    access.stream = stream_name(record.stamp.actor);
    if (record.doer.stage != 0) {
        access.stage = labels[record.doer.stage];
        access.batch = static_cast<std::size_t>(record.doer.batch);
    }
    return access;
}

SLUICE_BODY std::string Checker::buffer_name(const Block& block) const {
    char bytes[64];
    std::snprintf(bytes, sizeof(bytes), "%zu bytes at %p", static_cast<std::size_t>(block.end - block.begin),
                  reinterpret_cast<void*>(block.begin));
    if (!block.name.empty())
        return "'" + block.name + "'";
    return block.owner.empty() ? bytes : bytes + std::string(" of ") + block.owner;
}

SLUICE_BODY void Checker::race(const Block& block, const Record& first, const Record& second,
                               bool may_throw) {
    using sluice::checked::Mistake;
    sluice::checked::Finding finding;
    finding.first = access_of(first);
    finding.second = access_of(second);
    finding.buffer = buffer_name(block);
    const std::uintptr_t begin = first.begin < second.begin ? second.begin : first.begin;
    const std::uintptr_t end = first.end < second.end ? first.end : second.end;
    finding.address = reinterpret_cast<const void*>(begin);
    finding.bytes = end - begin;
    const auto is_thread = [&](const Record& record) {
        bool is = record.stamp.actor == host;
        for (const ActorId worker : workers)
            is = is || record.stamp.actor == worker;
        return is;
    };
    const auto is_host = [&](const Record& record) {
        return is_thread(record) || record.doer.op == Op::host;
    };
    const std::string& from = finding.first.stream;
    const std::string& to = finding.second.stream;
    const std::string before = first.writes ? "the write" : "the read";
    const std::string record =
        "record an event on " + from + " after " + before + " and have " + to + " wait for it before ";
    const std::string hand_on = "hand the buffer on as a stage's output, which the pipeline orders";
    const auto is_cpu_stage = [&](const Record& access) { return actors_[access.stamp.actor].cpu_stage; };
    const bool both_of_stages = first.doer.stage != 0 && second.doer.stage != 0;
    const bool is_source = block.owner.starts_with("a source");
    std::string& edge = finding.missing_edge;
    edge = "from " + words_of(finding.first) + " to " + words_of(finding.second) + ": ";
    if (is_held(first.doer)) {
        finding.mistake = second.doer.op == Op::free ? Mistake::use_after_free
                          : is_host(second)          ? Mistake::host_race
                                                     : Mistake::race;
        edge = "call wait() of the BatchRead that submit returned before the memory changes";
        if (first.doer.what != std::string_view(held_words(1)))
            edge += ", or use steps_per_graph = 1";
        finding.message =
            std::string(name_of(finding.mistake)) + " on " + finding.buffer + ": " +
            (second.doer.op == Op::host && second.doer.what == nullptr ? "the host"
                                                                       : words_of(finding.second)) +
            (second.doer.op == Op::free ? " freed" : " changed") + " batch " +
            std::to_string(first.doer.batch) + " while it was " + first.doer.what + ", where stage '" +
            finding.first.stage + "' reads it. Missing edge: " + edge;
    } else if (second.doer.op == Op::free) {
        finding.mistake = Mistake::use_after_free;
        if (!is_thread(second))
            edge += record + "the memory is freed";
        else if (first.doer.op == Op::batch)
            edge += "call wait() of the BatchRead that submit returned, or finish() of the pipeline, before "
                    "the memory is freed";
        else if (is_thread(first) || is_cpu_stage(first))
            edge += "call finish() of the pipeline before the memory is freed";
        else
            edge += std::string("call ") + (first.doer.stage != 0 ? "finish() of the pipeline, or " : "") +
                    "sync() on " + from + ", before the memory is freed" +
                    (block.device ? ", or allocate it in stream order" : "");
    } else if (both_of_stages && first.doer.stage == second.doer.stage && block.owner.empty() &&
               actors_[first.stamp.actor].lane && actors_[second.stamp.actor].lane) {
        finding.mistake = is_host(first) || is_host(second) ? Mistake::host_race : Mistake::race;
        if (!is_cpu_stage(first) && !is_cpu_stage(second))
            edge += record + (second.writes ? "the write; or " : "the read; or ");
        edge += "give the stage one lane, or each lane a buffer of its own";
    } else if (second.doer.op == Op::fill_batch) {
        finding.mistake = Mistake::host_race;
        edge += first.doer.stage != 0 ? "a source's batch may only be used by the call that was handed it"
                                      : "call release() of the batch's handle with the stream of that work, "
                                        "after it has been enqueued";
    } else if (both_of_stages && (is_cpu_stage(first) || is_cpu_stage(second))) {
        finding.mistake = is_host(first) || is_host(second) ? Mistake::host_race : Mistake::race;
        edge += hand_on;
    } else if (is_host(second)) {
        finding.mistake = Mistake::host_race;
        if (is_source && second.writes) {
            edge +=
                "change the batch where the source fills it; it is given back when the stages have read it";
        } else if (is_thread(first) || is_cpu_stage(first)) { // there is nothing to call sync() on
            edge += "touch the memory before the batch of that work is submitted, or after finish()";
        } else {
            // Not from within the pipeline itself, which it would wait for.
            if (first.doer.op == Op::batch)
                edge += "call wait() of the BatchRead that submit returned, or ";
            else
                edge += "call ";
            if (first.doer.stage != 0 && second.doer.stage == 0)
                edge += "finish() of the pipeline, or ";
            edge += "sync() on " + from + ", or on an event that is recorded there after " + before +
                    ", before the host touches the memory";
            if (both_of_stages)
                edge += "; or " + hand_on;
        }
    } else if (is_host(first)) {
        finding.mistake = Mistake::host_race;
        edge += "hand over what the thread has touched before the work is enqueued";
    } else {
        finding.mistake = first.doer.op == Op::free ? Mistake::use_after_free : Mistake::race;
        edge += record + (second.writes ? "the write" : "the read");
        const bool is_one_batch = both_of_stages && first.doer.batch == second.doer.batch;
        // What the pipeline orders, a stage has done on another stream than its own.
        if (is_one_batch && (first.doer.stage == second.doer.stage || !block.owner.empty())) {
            edge += ", or in the callable of stage '" + finding.first.stage +
                    "' before it returns: a side stream must be joined";
        } else if (!block.owner.empty()) {
            edge += "; a slot may only be used by the call that was handed it";
        } else if (both_of_stages) {
            edge += "; or " + hand_on;
        }
    }
    note(std::move(finding), may_throw);
}

// What a destructor met at the end of a program, with no call after it.
SLUICE_BODY void print_unthrown() {
    const Locked checker;
    if (checker->pending)
        std::fprintf(stderr, "sluice: no call was left to throw this: %s\n", checker->pending->what());
}

SLUICE_BODY void Checker::note(sluice::checked::Finding finding, bool may_throw) {
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
    for (sluice::checked::Finding& other : mistakes) {
        if (other.mistake == finding.mistake && other.buffer == finding.buffer &&
            other.first.stage == finding.first.stage && other.second.stage == finding.second.stage &&
            other.first.operation == finding.first.operation &&
            other.second.operation == finding.second.operation) {
            ++other.count;
            other.first.latest_batch = finding.first.batch;
            other.second.latest_batch = finding.second.batch;
            known = true;
            break;
        }
    }
    if (!known && mistakes.size() < 256)
        mistakes.push_back(std::move(finding));
    if (!throws)
        return;
    if (may_throw)
        throw error;
    if (pending)
        return;
    pending = error;
    static const int registered = std::atexit(print_unthrown);
    (void)registered;
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

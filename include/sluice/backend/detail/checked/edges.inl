// Bodies of state.hpp: what is said of two accesses that nothing orders.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string_view>

#include <sluice/backend/detail/checked/findings.inl>
#include <sluice/backend/detail/checked/held.inl>
#include <sluice/backend/detail/checked/state.hpp>

namespace sluice::detail::checked {

/// Says where an edge is missing, and what kind of mistake that is.
class EdgeWriter {
public:
    EdgeWriter(Checker& checker, const Block& block, const Record& first, const Record& second)
        : checker_(checker), block_(block), first_(first), second_(second) {
        finding.first = checker.access_of(first);
        finding.second = checker.access_of(second);
        finding.mistake = is_host(first) || is_host(second) ? Mistake::host_race : Mistake::race;
    }

    void write() {
        if (is_held(first_.doer)) {
            of_held_batch();
            return;
        }
        finding.missing_edge =
            "from " + words_of(finding.first) + " to " + words_of(finding.second) + ": " + edge();
    }

    sluice::checked::Finding finding;

private:
    using Mistake = sluice::checked::Mistake;

    bool is_thread(const Record& record) const {
        bool is = record.stamp.actor == Checker::host;
        for (const ActorId worker : checker_.workers)
            is = is || record.stamp.actor == worker;
        return is;
    }
    bool is_host(const Record& record) const { return is_thread(record) || record.doer.op == Op::host; }
    const Actor& actor_of(const Record& record) const { return checker_.actor(record.stamp.actor); }
    /// Also a CPU stage, which no event stands for.
    bool is_cpu_stage(const Record& record) const { return actor_of(record).cpu_stage; }
    bool of_stages() const { return first_.doer.stage != 0 && second_.doer.stage != 0; }
    bool of_one_batch() const { return of_stages() && first_.doer.batch == second_.doer.batch; }
    bool of_one_stage() const { return of_stages() && first_.doer.stage == second_.doer.stage; }
    bool aside() const { return first_.doer.aside || second_.doer.aside; }
    /// Whether both are of one launch of a graph.
    bool of_one_graph() const {
        return actor_of(first_).launcher && actor_of(first_).launcher == actor_of(second_).launcher;
    }
    /// On which an event can be recorded, and which can wait for one.
    std::string stream_of(const Record& record) const {
        return checker_.stream_name(actor_of(record).launcher.value_or(record.stamp.actor));
    }
    const char* first_access() const { return first_.writes ? "the write" : "the read"; }
    std::string event_before(const char* what) const {
        return "record an event on " + stream_of(first_) + " after " + first_access() + " and have " +
               stream_of(second_) + " wait for it before " + what;
    }
    static constexpr const char* hand_on =
        "hand the buffer on as a stage's output, which the pipeline orders";

    void of_held_batch() {
        finding.mistake = second_.doer.op == Op::free ? Mistake::use_after_free : finding.mistake;
        std::string& edge = finding.missing_edge;
        edge = "call wait() of the BatchRead that submit returned before the memory changes";
        if (first_.doer.what != std::string_view(held_words(1)))
            edge += ", or use steps_per_graph = 1";
        finding.message =
            std::string(name_of(finding.mistake)) + " on " + finding.buffer + ": " +
            (second_.doer.op == Op::host && second_.doer.what == nullptr ? "the host"
                                                                         : words_of(finding.second)) +
            (second_.doer.op == Op::free ? " freed" : " changed") + " batch " +
            std::to_string(first_.doer.batch) + " while it was " + first_.doer.what + ", where stage '" +
            finding.first.stage + "' reads it. Missing edge: " + edge;
    }

    std::string edge() {
        if (second_.doer.op == Op::free)
            return before_free();
        const std::string maker = checker_.sharing_maker(block_, first_, second_);
        if (maker.empty())
            return of_race();
        const std::string race = of_race();
        const std::string cure = "have " + maker + " give each slot memory of its own";
        return second_.doer.op == Op::fill_batch ? cure
                                                 : cure + " or, where it is meant to be shared, " + race;
    }
    std::string of_race() {
        const char* const what = second_.writes ? "the write" : "the read";
        const Record& writer = first_.writes ? first_ : second_;
        const std::string writers_stage = (first_.writes ? finding.first : finding.second).stage;
        if (of_one_stage() && block_.owner.empty() && actor_of(first_).lane && actor_of(second_).lane) {
            const bool on_thread = is_cpu_stage(first_) || is_cpu_stage(second_);
            return (on_thread ? "" : event_before(what) + "; or ") +
                   "give the stage one lane, or each lane a buffer of its own";
        }
        if (second_.doer.op == Op::fill_batch) {
            finding.mistake = Mistake::host_race;
            return first_.doer.stage != 0 ? "a source's batch may only be used by the call that was handed it"
                                          : "call release() of the batch's handle with the stream of that "
                                            "work, after it has been enqueued";
        }
        // What its maker hands on is in order: of its readers one writes.
        if (of_one_batch() && !of_one_stage() && !aside() && block_.owner.starts_with("stage '") &&
            block_.owner != "stage '" + writers_stage + "'" && writer.doer.op != Op::slot)
            return "stage '" + writers_stage + "' is handed this slot of " + block_.owner +
                   " to read it: have it write to a slot of its own";
        if (of_stages() && (is_cpu_stage(first_) || is_cpu_stage(second_)))
            return hand_on;
        if (is_thread(second_) || is_cpu_stage(second_))
            return before_host();
        if (is_thread(first_) || is_cpu_stage(first_))
            return "hand over what the thread has touched before the work is enqueued";
        if (first_.doer.op == Op::free)
            finding.mistake = Mistake::use_after_free;
        return between_streams(what);
    }
    std::string before_free() {
        finding.mistake = Mistake::use_after_free;
        if (!is_thread(second_))
            return event_before("the memory is freed");
        if (first_.doer.op == Op::batch)
            return "call wait() of the BatchRead that submit returned, or finish() of the pipeline, before "
                   "the memory is freed";
        if (is_thread(first_) || is_cpu_stage(first_))
            return "call finish() of the pipeline before the memory is freed";
        return std::string("call ") + (first_.doer.stage != 0 ? "finish() of the pipeline, or " : "") +
               "sync() on " + stream_of(first_) + ", before the memory is freed" +
               (block_.device ? ", or allocate it in stream order" : "");
    }
    std::string before_host() {
        if (block_.owner.starts_with("a source") && second_.writes)
            return "change the batch where the source fills it; it is given back when the stages have read "
                   "it";
        if (is_thread(first_) || is_cpu_stage(first_)) // there is nothing to call sync() on
            return "touch the memory before the batch of that work is submitted, or after finish()" +
                   in_thread();
        // Not from within the pipeline itself, which it would wait for.
        std::string text =
            first_.doer.op == Op::batch ? "call wait() of the BatchRead that submit returned, or " : "call ";
        if (first_.doer.stage != 0 && second_.doer.stage == 0)
            text += "finish() of the pipeline, or ";
        text += "sync() on " + stream_of(first_) + ", or on an event that is recorded there after " +
                first_access() + ", before the host touches the memory" + in_thread();
        return of_stages() ? text + "; or " + hand_on : text;
    }
    // A thread that a CPU stage has started, of which the checker does not know, counts as the host.
    std::string in_thread() const {
        const bool may_be = second_.doer.stage == 0 && block_.owner.starts_with("stage '") &&
                            std::any_of(checker_.calls.begin(), checker_.calls.end(),
                                        [](const PendingCall& call) { return call.stage != 0; });
        return may_be ? "; or, in a thread that a CPU stage has started, use a span or data() that the stage "
                        "itself has taken"
                      : "";
    }
    std::string between_streams(const char* what) {
        // What the pipeline orders, a stage has done on another stream than its own.
        if (of_one_batch() && (of_one_stage() || !block_.owner.empty()))
            return event_before(what) + ", or in the callable of stage '" + finding.first.stage +
                   "' before it returns: a side stream must be joined";
        if (of_one_graph() && of_stages())
            return hand_on;
        if (of_one_graph() && first_.doer.node != 0 && second_.doer.node != 0)
            return first_.doer.node == second_.doer.node
                       ? "within " + node_name(first_.doer.node) +
                             ", name the one in the `after` of the other"
                       : "name " + node_name(first_.doer.node) + " in the `after` of " +
                             node_name(second_.doer.node);
        if (of_one_graph())
            return std::string("in the work that is captured, record an event after ") + first_access() +
                   " and have the other stream wait for it before " + what;
        if (!block_.owner.empty())
            return event_before(what) + "; a slot may only be used by the call that was handed it";
        return of_stages() ? event_before(what) + "; or " + hand_on : event_before(what);
    }

    Checker& checker_;
    const Block& block_;
    const Record& first_;
    const Record& second_;
};

// The slots that hold the bytes, each maker's together, and whether they are several.
inline std::string words_of_holders(const Block& block, std::uintptr_t begin, std::uintptr_t end,
                                    bool& shared) {
    std::vector<const Holder*> here;
    for (const Holder& holder : block.holders) {
        if (holder.bytes.begin < end && begin < holder.bytes.end)
            here.push_back(&holder);
    }
    shared = here.size() > 1;
    if (here.size() == 1)
        return here[0]->of + ", slot " + std::to_string(here[0]->slot);
    std::string words;
    for (std::size_t i = 0, next = 0; i < here.size(); i = next) {
        while (next < here.size() && here[next]->of == here[i]->of)
            ++next;
        words += (i == 0 ? "slot" : " and slot") + std::string(next - i > 1 ? "s " : " ") +
                 std::to_string(here[i]->slot);
        if (next - i > 1)
            words += (next - i > 2 ? " to " : " and ") + std::to_string(here[next - 1]->slot);
        words += " of " + here[i]->of;
    }
    return words;
}

SLUICE_BODY std::string Checker::buffer_name(const Block& block, std::uintptr_t begin,
                                             std::uintptr_t end) const {
    if (!block.name.empty())
        return "'" + block.name + "'";
    char bytes[64];
    std::snprintf(bytes, sizeof(bytes), "%zu byte%s at %p", static_cast<std::size_t>(block.end - block.begin),
                  block.end - block.begin == 1 ? "" : "s", reinterpret_cast<void*>(block.begin));
    bool shared = false;
    const std::string holders = words_of_holders(block, begin, end, shared);
    if (holders.empty())
        return bytes;
    return shared ? bytes + std::string(" that ") + holders + " share"
                  : bytes + std::string(" of ") + holders;
}

// Whose slots have the same memory; empty where that has a name, or only one slot has it.
SLUICE_BODY std::string Checker::sharing_maker(const Block& block, const Record& first,
                                               const Record& second) const {
    bool shared = false;
    const std::uintptr_t begin = first.begin < second.begin ? second.begin : first.begin;
    if (block.name.empty())
        (void)words_of_holders(block, begin, first.end < second.end ? first.end : second.end, shared);
    if (!shared)
        return {};
    for (const Holder& holder : block.holders) {
        if (holder.of != block.holders.front().of)
            return "the slot makers";
    }
    return "the slot maker of " + block.holders.front().of;
}

SLUICE_BODY void Checker::race(const Block& block, const Record& first, const Record& second,
                               bool may_throw) {
    EdgeWriter writer(*this, block, first, second);
    const std::uintptr_t begin = first.begin < second.begin ? second.begin : first.begin;
    const std::uintptr_t end = first.end < second.end ? first.end : second.end;
    sluice::checked::Finding& finding = writer.finding;
    finding.buffer = buffer_name(block, begin, end);
    finding.address = reinterpret_cast<const void*>(begin);
    finding.bytes = end - begin;
    writer.write();
    // Of one mistake in a maker one finding, whichever slots meet.
    std::string kind = sharing_maker(block, first, second);
    if (kind.empty() && block.name.empty() && !block.owner.empty())
        kind = block.owner + std::to_string(finding.bytes);
    note(std::move(finding), may_throw, std::move(kind));
}

} // namespace sluice::detail::checked

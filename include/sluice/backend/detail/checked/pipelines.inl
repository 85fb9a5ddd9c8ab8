// Bodies of interface.hpp: what pipelines and sources know.
#pragma once

#include <algorithm>

#include <sluice/backend/detail/checked/memory.inl>
#include <sluice/backend/detail/checked/state.hpp>

namespace sluice::detail::checked {

SLUICE_BODY std::uint32_t stage_label(const char* name) { return Locked()->label_of(name); }

SLUICE_BODY void object_made(const void* object, const Range* memory, std::size_t count, const char* of,
                             int slot) {
    Locked checker;
    ObjectState& state = checker->objects[object];
    state.memory.clear();
    for (std::size_t i = 0; i < count; ++i) {
        Block* const block = checker->blocks.find(reinterpret_cast<std::uintptr_t>(memory[i].begin));
        if (block == nullptr || !block->alive || memory[i].bytes == 0)
            continue;
        const auto begin = reinterpret_cast<std::uintptr_t>(memory[i].begin);
        const Holder holder{{begin, begin + memory[i].bytes}, object, of, slot};
        const auto is_same = [&](const Holder& other) {
            return other.object == object && other.bytes.begin == holder.bytes.begin;
        };
        if (std::none_of(block->holders.begin(), block->holders.end(), is_same))
            block->holders.push_back(holder);
        if (!memory[i].owned)
            continue;
        bool known = false;
        for (const ObjectState::Part& part : state.memory)
            known = known || part.block == block->number;
        if (known)
            continue;
        state.memory.push_back({memory[i], block->number});
        block->owner = of;
    }
}

SLUICE_BODY void object_gone(const void* object) noexcept {
    Locked checker;
    checker->blocks.for_each([&](Block& block) {
        std::erase_if(block.holders, [&](const Holder& holder) { return holder.object == object; });
    });
    checker->objects.erase(object);
}

// Those parts of an object that are still there.
SLUICE_BODY void Checker::append_parts(List<Range>& ranges, const void* object, bool writes) {
    const auto found = objects.find(object);
    if (found == objects.end())
        return;
    for (const ObjectState::Part& part : found->second.memory) {
        const Block* const block = blocks.find(reinterpret_cast<std::uintptr_t>(part.range.begin));
        if (block != nullptr && block->alive && block->number == part.block)
            ranges.push_back({part.range.begin, part.range.bytes, writes});
    }
}

SLUICE_BODY void stage_called(Key on, const Handed* handed, std::size_t count, bool unseen) {
    Locked checker;
    checker->look_at_suspects(unseen);
    checker->throw_pending();
    Actor& stream = checker->enqueuing(on);
    if (unseen)
        checker->note_opaque(stream);
    else
        ++checker->opaque;
    NodeModel node;
    node.opaque = true;
    node.unseen = unseen;
    List<Range>& ranges = checker->scratch;
    const bool captured = stream.capture != nullptr;
    const Stamp stamp = captured ? Stamp{} : checker->new_work(stream);
    for (std::size_t i = 0; i < count; ++i) {
        Doer doer = checker->doer_of(handed[i].op, nullptr);
        doer.output = handed[i].range.output;
        ranges.clear();
        if (handed[i].object != nullptr)
            checker->append_parts(ranges, handed[i].object, handed[i].writes);
        else
            ranges.push_back(handed[i].range);
        if (!captured) {
            checker->access(ranges.data(), ranges.size(), stamp, doer);
            continue;
        }
        for (const Range& range : ranges)
            node.accesses.push_back({range, doer, 0});
    }
    if (captured)
        checker->append(stream, std::move(node));
}

SLUICE_BODY void host_works_on(const void* object, bool writes, Op op) {
    Locked checker;
    checker->look_at_suspects(false);
    checker->throw_pending();
    if (!checker->doer_known())
        return;
    checker->scratch.clear();
    checker->append_parts(checker->scratch, object, writes);
    checker->access(checker->scratch.data(), checker->scratch.size(), checker->new_work(checker->doer()),
                    checker->doer_of(op, nullptr));
}

SLUICE_BODY bool knows_object(const void* object) { return Locked()->objects.contains(object); }

SLUICE_BODY List<Range> memory_of(const void* object) {
    Locked checker;
    List<Range> ranges;
    checker->append_parts(ranges, object, true);
    for (Range& range : ranges) {
        const Block* const block = checker->blocks.find(reinterpret_cast<std::uintptr_t>(range.begin));
        range.on_host = !block->device;
    }
    return ranges;
}

SLUICE_BODY Listening::Listening() : lists_(1), outer_(listening()) { listening() = &lists_; }

SLUICE_BODY Listening::~Listening() { listening() = outer_; }

SLUICE_BODY void Listening::begin_list() { lists_.emplace_back(); }

SLUICE_BODY List<Range>& Listening::list(std::size_t number) { return lists_[number]; }

SLUICE_BODY void Checker::note_aside(const Stamp& stamp) {
    PendingCall* const call = current_call();
    if (call == nullptr || stamp.actor == call->stamp.actor)
        return;
    const bool is_known = std::any_of(call->asides.begin(), call->asides.end(),
                                      [&](const Aside& aside) { return aside.actor == stamp.actor; });
    if (!is_known)
        call->asides.push_back({stamp.actor, stamp.time});
}

SLUICE_BODY bool Checker::may_be_awaited(const Stamp& a, const Stamp& b) const {
    return std::any_of(calls.begin(), calls.end(), [&](const PendingCall& call) {
        return b.knows(call.stamp.actor) >= call.stamp.time &&
               std::any_of(call.asides.begin(), call.asides.end(), [&](const Aside& aside) {
                   return aside.actor == a.actor && aside.first <= a.time;
               });
    });
}

SLUICE_BODY void Checker::take_asides(const PendingCall& ended, const Clock& seen) {
    const auto take = [&](Record& record) {
        for (const Aside& aside : ended.asides) {
            if (record.stamp.actor == aside.actor && aside.first <= record.stamp.time &&
                record.stamp.time <= seen.of(aside.actor)) {
                Clock known;
                record.stamp.tell(known);
                record.stamp = ended.stamp.with(known);
                return;
            }
        }
    };
    blocks.for_each([&](Block& block) {
        std::for_each(block.records.begin(), block.records.end(), take);
        std::for_each(block.passed.begin(), block.passed.end(), take);
    });
    for (Undecided& one : undecided) {
        take(one.first);
        take(one.second);
    }
    decide();
}

} // namespace sluice::detail::checked

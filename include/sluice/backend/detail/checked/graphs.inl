// Bodies of interface.hpp: graphs.
#pragma once

#include <algorithm>

#include <sluice/backend/detail/checked/state.hpp>

namespace sluice::detail::checked {

SLUICE_BODY void graph_batch(std::uint64_t batch) noexcept { graph_batch_of_thread() = batch; }

// The accesses of a node name the allocations that are there now.
SLUICE_BODY void Checker::name_blocks(NodeModel& node) {
    for (NodeAccess& access : node.accesses) {
        const Block* const block = blocks.find(reinterpret_cast<std::uintptr_t>(access.range.begin));
        access.block = block != nullptr && block->owned && block->alive ? block->number : 0;
    }
}

SLUICE_BODY void Checker::append(Actor& stream, NodeModel node) {
    GraphModel& model = *stream.capture->model;
    name_blocks(node);
    node.after = stream.last;
    model.nodes.push_back(std::move(node));
    stream.last.assign(1, model.nodes.size() - 1);
}

SLUICE_BODY void capture_begun(Key on, Key body) {
    Locked checker;
    Actor& stream = checker->stream(on);
    auto capture = std::make_unique<Capturing>();
    capture->origin = on;
    capture->model = body == nullptr ? std::make_shared<GraphModel>() : checker->graphs[body];
    if (capture->model == nullptr)
        capture->model = std::make_shared<GraphModel>();
    capture->model->first_batch = graph_batch_of_thread();
    stream.capture = capture.get();
    stream.last.clear();
    checker->captures[on] = std::move(capture);
}

SLUICE_BODY void capture_ended(Key on, Key graph) {
    Locked checker;
    const auto found = checker->captures.find(on);
    if (found == checker->captures.end())
        return;
    for (const auto& [key, id] : checker->streams) {
        Actor& stream = checker->actor(id);
        if (stream.capture == found->second.get()) {
            stream.capture = nullptr;
            stream.last.clear();
        }
    }
    if (graph != nullptr)
        checker->graphs[graph] = found->second->model;
    checker->captures.erase(found);
}

SLUICE_BODY void graph_made(Key graph) {
    Locked checker;
    checker->graphs[graph] = std::make_shared<GraphModel>();
}

SLUICE_BODY void graph_destroyed(Key graph) noexcept {
    Locked checker;
    checker->graphs.erase(graph);
}

SLUICE_BODY NodeModel& Checker::add_node(Key graph, Key node, KeyList after) {
    std::shared_ptr<GraphModel>& model = graphs[graph];
    if (model == nullptr)
        model = std::make_shared<GraphModel>();
    NodeModel added;
    added.key = node;
    for (std::size_t i = 0; i < after.count; ++i) {
        const std::size_t index = model->find(after.keys[i]);
        if (index < model->nodes.size())
            added.after.push_back(index);
    }
    model->nodes.push_back(std::move(added));
    return model->nodes.back();
}

SLUICE_BODY void node_added(Key graph, Key node, KeyList after, const Range* ranges, std::size_t count,
                            Op op) {
    Locked checker;
    NodeModel& added = checker->add_node(graph, node, after);
    for (std::size_t i = 0; i < count; ++i)
        added.accesses.push_back({ranges[i], checker->doer_of(op, nullptr), 0});
    added.opaque = added.unseen = count == 0;
    checker->name_blocks(added);
}

SLUICE_BODY void node_calls(Key graph, Key node, Token call) {
    Locked checker;
    const auto executable = checker->executables.find(graph);
    const bool of_executable = executable != checker->executables.end();
    const std::shared_ptr<GraphModel>& model =
        of_executable ? executable->second.model : checker->graphs[graph];
    const std::size_t index = model == nullptr ? 0 : model->find(node);
    if (model == nullptr || index == model->nodes.size())
        return;
    model->nodes[index].call = call;
    if (of_executable)
        executable->second.program = ProgramMaker::make(*model);
}

SLUICE_BODY void dependency_added(Key graph, Key earlier, Key later) {
    Locked checker;
    const std::shared_ptr<GraphModel>& model = checker->graphs[graph];
    if (model == nullptr)
        return;
    const std::size_t from = model->find(earlier), to = model->find(later);
    if (from < model->nodes.size() && to < model->nodes.size())
        model->nodes[to].after.push_back(from);
}

SLUICE_BODY void child_added(Key graph, Key node, KeyList after, Key child) {
    Locked checker;
    const std::shared_ptr<GraphModel> of = checker->graphs[child];
    NodeModel& added = checker->add_node(graph, node, after);
    added.opaque = added.unseen = of == nullptr;
    if (of != nullptr)
        added.bodies.push_back(of->clone());
}

SLUICE_BODY void bodies_added(Key graph, Key node, KeyList after, KeyList bodies) {
    Locked checker;
    std::vector<std::shared_ptr<GraphModel>> models;
    for (std::size_t i = 0; i < bodies.count; ++i)
        models.push_back(checker->graphs[bodies.keys[i]] = std::make_shared<GraphModel>());
    checker->add_node(graph, node, after).bodies = std::move(models);
}

SLUICE_BODY void bodies_captured(Key on, KeyList bodies) {
    Locked checker;
    Actor& stream = checker->stream(on);
    NodeModel node;
    for (std::size_t i = 0; i < bodies.count; ++i)
        node.bodies.push_back(checker->graphs[bodies.keys[i]] = std::make_shared<GraphModel>());
    if (stream.capture != nullptr)
        checker->append(stream, std::move(node));
}

SLUICE_BODY void instantiated(Key key, Key graph) {
    Locked checker;
    GraphExecModel& executable = checker->executables[key];
    const auto found = checker->graphs.find(graph);
    executable.model = found == checker->graphs.end() || found->second == nullptr
                           ? std::make_shared<GraphModel>()
                           : found->second->clone();
    executable.program = ProgramMaker::make(*executable.model);
}

SLUICE_BODY void executable_destroyed(Key key) noexcept {
    Locked checker;
    checker->executables.erase(key);
}

SLUICE_BODY void node_changed(Key key, Key node, const Range* ranges, std::size_t count) {
    Locked checker;
    GraphExecModel& executable = checker->executables[key];
    if (executable.model == nullptr)
        return;
    const std::size_t index = executable.model->find(node);
    if (index == executable.model->nodes.size())
        return;
    NodeModel& changed = executable.model->nodes[index];
    const Doer doer = changed.accesses.empty() ? Doer{} : changed.accesses.front().doer;
    changed.accesses.clear();
    for (std::size_t i = 0; i < count; ++i)
        changed.accesses.push_back({ranges[i], doer, 0});
    checker->name_blocks(changed);
    executable.program = ProgramMaker::make(*executable.model);
}

SLUICE_BODY void child_changed(Key key, Key node, Key child) {
    Locked checker;
    GraphExecModel& executable = checker->executables[key];
    const std::shared_ptr<GraphModel> model = checker->graphs[child];
    if (executable.model == nullptr || model == nullptr)
        return;
    const std::size_t index = executable.model->find(node);
    if (index == executable.model->nodes.size())
        return;
    executable.model->nodes[index].bodies.assign(1, model->clone());
    executable.program = ProgramMaker::make(*executable.model);
}

SLUICE_BODY void Checker::await_call(const Program::Step& step, const Stamp& stamp, std::uint64_t offset) {
    // Of launches whose callables never came, for a fault, some are kept.
    constexpr std::size_t most = 1024;
    if (calls.size() >= most) {
        const auto first = std::find_if(calls.begin(), calls.end(),
                                        [](const PendingCall& call) { return call.captured != 0; });
        if (first != calls.end())
            calls.erase(first);
    }
    const StageScope* const stage = StageScope::current();
    calls.push_back({stamp, stage != nullptr ? stage->label : step.caller.stage,
                     stage != nullptr ? stage->number : step.caller.batch + offset, step.call});
}

SLUICE_BODY void Checker::launch(GraphExecModel& executable, Actor& stream) {
    const Program& program = executable.program;
    if (program.unseen)
        note_opaque(stream);
    else if (program.opaque)
        ++opaque;
    if (executable.launched)
        (void)stream.learn(executable.last);
    while (stream.branches.size() < program.ends.size())
        stream.branches.push_back(make_actor().id);
    for (const ActorId branch : stream.branches)
        actors_[branch].launcher = stream.id;
    const std::uint64_t offset = graph_batch_of_thread() -
                                 (executable.model ? executable.model->first_batch : graph_batch_of_thread());
    // Each branch goes on where it was: launches on one stream follow each other.
    std::vector<Time>& begins = branch_begins_;
    begins.clear();
    for (std::size_t branch = 0; branch < program.ends.size(); ++branch) {
        Actor& of = actors_[stream.branches[branch]];
        if (of.name.empty())
            of.name = "branch " + std::to_string(branch) + " of a graph on " + stream_name(stream.id);
        begins.push_back(of.time());
        of.clock.raise(of.id, of.time() + program.ends[branch]);
    }
    stream.changed();
    // Also where a mistake is thrown: what is known of the launch so far is known to end.
    struct End {
        GraphExecModel& executable;
        Actor& stream;
        const std::vector<Time>& begins;
        ~End() {
            const std::vector<Time>& ends = executable.program.ends;
            for (std::size_t branch = 0; branch < ends.size(); ++branch)
                stream.clock.raise(stream.branches[branch], begins[branch] + ends[branch]);
            stream.changed();
            executable.last = stream.stamp();
            executable.launched = true;
            stream.tick();
        }
    } const end{executable, stream, begins};
    for (const Program::Step& step : program.steps) {
        Known* const known = known_pool().take();
        known->clock = stream.clock;
        for (std::size_t branch = 0; branch < step.after.size(); ++branch) {
            if (step.after[branch] > 0)
                known->clock.raise(stream.branches[branch], begins[branch] + step.after[branch]);
        }
        const Stamp stamp =
            Stamp::adopt(stream.branches[step.branch], begins[step.branch] + step.time, known);
        if (step.call != 0)
            await_call(step, stamp, offset);
        access(step.accesses.data(), step.accesses.size(), stamp, offset);
    }
}

SLUICE_BODY void launched(Key key, Key on) {
    Locked checker;
    const auto found = checker->executables.find(key);
    checker->look_at_suspects(found == checker->executables.end() || found->second.program.unseen);
    checker->throw_pending();
    Actor& stream = checker->enqueuing(on);
    if (found != checker->executables.end() && stream.capture == nullptr)
        checker->launch(found->second, stream);
    else
        checker->note_opaque(stream);
}

} // namespace sluice::detail::checked

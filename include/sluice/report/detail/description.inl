// Bodies of description.hpp.
#pragma once

#include <utility>

#include <sluice/report/detail/counter_steps.hpp>
#include <sluice/report/detail/json_writer.hpp>
#include <sluice/report/detail/timeline_text.hpp>

namespace sluice {

namespace detail {

namespace description {

/// The number of a stream among those seen so far, itself included.
template <class Stream>
std::size_t number_of(List<Stream>& seen, Stream stream) {
    std::size_t number = 0;
    while (number < seen.size() && !(seen.data()[number] == stream))
        ++number;
    if (number == seen.size())
        seen.push_back(stream);
    return number;
}

template <Backend B>
PipelineDescription of(const PipelineCore<B>& core) {
    const PipelineOptions& options = core.options();
    const PlanData& plan = core.plan();
    PipelineDescription all{.backend = B::name,
                            .schedule = options.schedule,
                            .steps_per_graph = options.steps_per_graph,
                            .slots = core.slots(),
                            .in_flight = core.in_flight()};
    if (options.schedule == Schedule::graphed)
        all.graphs = core.graphs_whole_steps() ? GraphedWork::steps : GraphedWork::stages;
    List<BasicStreamRef<B>> seen;
    for (std::size_t i = 0; i < plan.stages.size(); ++i) {
        const StagePlan& stage = plan.stages[i];
        const auto place = core.place_of(i);
        StageDescription& one = all.stages.emplace_back();
        one.name = core.stage_name(i);
        one.unit = stage.aside ? "CPU" : device_unit<B>(core.device_of(i));
        one.is_cpu = stage.is_cpu;
        one.lanes = place.lanes;
        for (const BasicStreamRef<B> stream : place.streams)
            one.streams.push_back(number_of(seen, stream));
        one.external_stream = place.external_stream;
        one.priority = place.priority;
        one.multiprocessors = place.multiprocessors;
        one.graphed = place.graphed;
        one.reads_batch = stage.reads_batch;
        for (std::size_t of = 0; of < plan.stages.size(); ++of) {
            if (plan.reads_output(i, of))
                one.reads.push_back(of);
        }
        for (const PlanWait& wait : plan.waits_of(i))
            one.waits.push_back({wait.stage, wait.former, wait.ahead});
        one.window = stage.window;
        one.batches_a_run = place.batches_a_run;
        one.every = place.every;
        one.in_place = stage.hands_on;
        one.has_output = stage.maker >= 0;
        one.slot_bytes = place.slot_size;
        one.device_bytes = place.slot_bytes.device;
        one.pinned_bytes = place.slot_bytes.pinned;
    }
    return all;
}

inline const char* graphs_text(GraphedWork graphs) noexcept {
    return graphs == GraphedWork::none ? "none" : graphs == GraphedWork::steps ? "steps" : "stages";
}

inline void add_numbers(JsonWriter& json, const char* key, const std::vector<std::size_t>& numbers) {
    json.open('[', key);
    for (const std::size_t number : numbers)
        json.items({number});
    json.close(']');
}

inline void add_stage(JsonWriter& json, const StageDescription& stage) {
    json.open('{');
    json.members(
        {{"name", stage.name}, {"unit", stage.unit}, {"is_cpu", stage.is_cpu}, {"lanes", stage.lanes}});
    add_numbers(json, "streams", stage.streams);
    json.members({{"external_stream", stage.external_stream},
                  {"priority", static_cast<double>(stage.priority)},
                  {"multiprocessors", static_cast<double>(stage.multiprocessors)},
                  {"graphed", stage.graphed},
                  {"reads_batch", stage.reads_batch}});
    add_numbers(json, "reads", stage.reads);
    json.members({{"window", stage.window},
                  {"batches_a_run", stage.batches_a_run},
                  {"every", stage.every},
                  {"in_place", stage.in_place}});
    json.open('[', "waits");
    for (const StageWait& wait : stage.waits)
        json.object({{"stage", wait.stage}, {"former", wait.former}, {"ahead", wait.ahead}});
    json.close(']');
    json.members({{"has_output", stage.has_output},
                  {"slot_bytes", stage.slot_bytes},
                  {"device_bytes", stage.device_bytes},
                  {"pinned_bytes", stage.pinned_bytes}});
    json.close('}');
}

/// Within quotes.
inline std::string dot_text(const std::string& text) {
    std::string quoted;
    for (const char letter : timeline_text::printable(text)) {
        if (letter == '"' || letter == '\\')
            quoted += '\\';
        quoted += letter;
    }
    return quoted;
}

inline std::string dot_arrow(const std::string& from, std::size_t to, const char* attributes = "") {
    return "  " + from + " -> s" + std::to_string(to) + attributes + ";\n";
}

/// "2 slots, device 1 MiB" of all of them.
inline std::string ring_text(const StageDescription& stage, std::size_t slots) {
    std::string text = counted(slots, "slot");
    if (stage.device_bytes > 0)
        text += ", device " + counters::value_text(static_cast<double>(stage.device_bytes), "B");
    if (stage.pinned_bytes > 0)
        text += ", pinned " + counters::value_text(static_cast<double>(stage.pinned_bytes), "B");
    return text;
}

inline std::string place_text(const StageDescription& stage) {
    std::string text = stage.unit;
    if (stage.streams.empty())
        return text + (stage.lanes == 1 ? ", a thread" : ", " + std::to_string(stage.lanes) + " threads");
    text += stage.streams.size() == 1 ? ", stream" : ", streams";
    for (const std::size_t stream : stage.streams)
        text += " " + std::to_string(stream);
    if (stage.batches_a_run > 1)
        text += ", once for " + std::to_string(stage.batches_a_run) + " batches";
    if (stage.every > 1)
        text += ", " + std::to_string(stage.every) + " runs an output";
    if (stage.multiprocessors > 0)
        text += ", " + detail::counted(stage.multiprocessors, "multiprocessor");
    return text + (stage.external_stream ? ", the caller's" : "");
}

} // namespace description
} // namespace detail

template <class StageList, class SlotList>
PipelineDescription describe(const Pipeline<StageList, SlotList>& pipeline) {
    return detail::description::of(detail::PipelineAccess::core(pipeline));
}

template <class Batch, Backend B>
PipelineDescription describe(const AnyPipeline<Batch, B>& pipeline) {
    return detail::description::of(detail::PipelineAccess::core(pipeline));
}

inline std::string to_json(const PipelineDescription& description) {
    detail::JsonWriter json;
    json.open('{');
    json.members({{"backend", description.backend},
                  {"schedule", to_string(description.schedule)},
                  {"graphs", detail::description::graphs_text(description.graphs)},
                  {"steps_per_graph", static_cast<double>(description.steps_per_graph)},
                  {"slots", description.slots},
                  {"in_flight", description.in_flight}});
    json.open('[', "stages");
    for (const StageDescription& stage : description.stages)
        detail::description::add_stage(json, stage);
    json.close(']');
    json.close('}');
    return std::move(json).text();
}

inline std::string to_dot(const PipelineDescription& description) {
    namespace parts = detail::description;
    std::string text = "digraph pipeline {\n  rankdir=LR;\n  label=\"";
    text += to_string(description.schedule);
    if (description.graphs != GraphedWork::none)
        text += std::string(", a graph ") +
                (description.graphs == GraphedWork::steps ? "for all stages" : "a stage");
    text += ", at most " + detail::counted(description.in_flight, "batch") +
            " in flight\";\n  node [shape=box];\n  batch [shape=ellipse];\n";
    const std::size_t count = description.stages.size();
    std::string arrows;
    for (std::size_t i = 0; i < count; ++i) {
        const StageDescription& stage = description.stages[i];
        text += "  s" + std::to_string(i) + " [label=\"" + parts::dot_text(stage.name) + "\\n" +
                parts::place_text(stage);
        if (stage.in_place)
            text += "\\nin place";
        else if (stage.has_output)
            text += "\\n" + parts::ring_text(stage, description.slots);
        text += "\"];\n";
        if (stage.reads_batch)
            arrows += parts::dot_arrow("batch", i);
        for (const std::size_t of : stage.reads)
            arrows += parts::dot_arrow("s" + std::to_string(of), i);
        for (const StageWait& wait : stage.waits) {
            if (wait.former)
                arrows += parts::dot_arrow("s" + std::to_string(wait.stage), i,
                                           " [style=dashed, constraint=false]");
        }
    }
    return text + arrows + "}\n";
}

} // namespace sluice

/// \file
/// The rows of a backend through sluice, as a user would write them. `Kit` has the stages' work:
///
/// - `Kit::Data`, what a stage makes, and `kit.make_data()`;
/// - `kit.grab(stream, frame, data)`, and `kit.infer(stream, data)`, which takes a while and notes the end;
/// - `kit.tiny(stream, stage, is_last)`, of which the last one notes the end;
/// - `kit.empty(stream)`, and `Kit::burst_steps`, of which the device is not far behind.
///
/// Subjects share the kit, which lives as long as any of them.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include <sluice/sluice.hpp>

#include "live_input.hpp"

namespace bench::live {

inline constexpr int no_bound = 1'000'000;

/// A camera's frames through two stages and two slots.
template <class Kit>
class Overloaded final : public Subject {
    using B = typename Kit::Backend;
    using Stream = sluice::BasicStreamRef<B>;
    using Data = typename Kit::Data;

public:
    Overloaded(const Kit& kit, int in_flight, bool tries)
        : tries_(tries), pipeline_{
                             sluice::Stages{
                                 sluice::Stage{"grab", [&kit](Stream stream, const Frame& frame,
                                                              Data& out) { kit.grab(stream, frame, out); }},
                                 sluice::Stage{"infer", [&kit](Stream stream,
                                                               const Data& in) { kit.infer(stream, in); }}},
                             sluice::Slots{[&kit](int) { return kit.make_data(); }},
                             {.slots = 2, .in_flight = in_flight}} {}
    bool take(const Frame& frame) override {
        if (tries_)
            return pipeline_.try_submit(frame).has_value();
        pipeline_.submit(frame);
        return true;
    }
    void finish() override { pipeline_.finish(); }
    Counts counts() override { return {pipeline_.submitted(), pipeline_.completed(), pipeline_.dropped()}; }

private:
    bool tries_;
    sluice::AnyPipeline<Frame, B> pipeline_;
};

struct Nothing {};
inline constexpr auto make_nothing = [](int) { return Nothing{}; };

/// A batch now and then through two or four stages. All batches are alike, so that graphs serve.
template <class Kit>
class Paced final : public Subject {
    using B = typename Kit::Backend;
    using Stream = sluice::BasicStreamRef<B>;

public:
    Paced(const Kit& kit, std::size_t stages, const sluice::PipelineOptions& options)
        : pipeline_(make(kit, stages, options)) {}
    bool take(const Frame& /*frame*/) override {
        pipeline_.submit(0);
        return true;
    }
    void finish() override { pipeline_.finish(); }
    Counts counts() override {
        return {pipeline_.submitted(), pipeline_.completed(), pipeline_.dropped(),
                pipeline_.graph_counters().replays};
    }

private:
    static sluice::AnyPipeline<int, B> make(const Kit& kit, std::size_t stages,
                                            const sluice::PipelineOptions& options) {
        const auto middle = [&kit](std::size_t stage) {
            return sluice::Stage{"middle", [&kit, stage](Stream stream, Nothing&, Nothing&) {
                                     kit.tiny(stream, stage, false);
                                 }};
        };
        const sluice::Stage first{
            "first", [&kit](Stream stream, const int&, Nothing&) { kit.tiny(stream, 0, false); }};
        const sluice::Stage last{
            "last", [&kit, stages](Stream stream, Nothing&) { kit.tiny(stream, stages - 1, true); }};
        if (stages == 2)
            return {sluice::Stages{first, last}, sluice::Slots{make_nothing}, options};
        return {sluice::Stages{first, middle(1), middle(2), last},
                sluice::Slots{make_nothing, make_nothing, make_nothing}, options};
    }

    sluice::AnyPipeline<int, B> pipeline_;
};

/// Adds the rows through sluice; `by_hand(letter)` and `paced_by_hand(stages, kind)` make the other side, or nothing.
template <class Kit, class ByHand, class PacedByHand>
void add_rows(const std::shared_ptr<Kit>& kit, Rows& rows, ByHand by_hand, PacedByHand paced_by_hand) {
    using sluice::Schedule;
    struct Shape {
        const char* letter;
        const char* name;
        int in_flight;
        bool tries;
        std::size_t bound;
        double p50, p99;
    };
    constexpr Shape shapes[] = {{"a", "submit, in_flight 2", 2, false, 2, 3, 5},
                                {"b", "try_submit, in_flight 1", 1, true, 1, 0, 2},
                                {"c", "try_submit, in_flight 2", 2, true, 2, 0, 0},
                                {"d", "submit, by default", 0, false, 128, 0, 0},
                                {"e", "submit, no bound", no_bound, false, 0, 0, 0}};
    for (const Shape& shape : shapes) {
        rows.overload.push_back(
            {shape.letter, shape.name,
             [kit, shape] { return std::make_unique<Overloaded<Kit>>(*kit, shape.in_flight, shape.tries); },
             shape.p50, shape.p99, shape.bound});
        if (MakeSubject made = by_hand(shape.bound, shape.tries))
            rows.overload.push_back({shape.letter, "  by hand", std::move(made), 0, 0, shape.bound});
    }
    struct Way {
        const char* name;
        sluice::PipelineOptions options;
        bool asked;
    };
    const Way ways[] = {
        {"serial", {.schedule = Schedule::serial}, true},
        {"overlapped", {.schedule = Schedule::overlapped}, true},
        {"graphed, one slot", {.schedule = Schedule::graphed, .slots = 1}, true},
        {"graphed, in_flight 1", {.schedule = Schedule::graphed, .in_flight = 1}, true},
        {"graphed, each stage", {.schedule = Schedule::graphed, .graph_each_stage = true}, false},
        {"graphed, by default", {.schedule = Schedule::graphed}, false},
    };
    for (const std::size_t stages : {std::size_t{2}, most_stages}) {
        for (std::size_t way = 0; way < std::size(ways); ++way) {
            rows.paced.push_back({std::to_string(stages) + " stages, " + ways[way].name,
                                  [kit, stages, options = ways[way].options] {
                                      return std::make_unique<Paced<Kit>>(*kit, stages, options);
                                  },
                                  paced_by_hand(stages, way), ways[way].asked,
                                  ways[way].options.schedule == Schedule::graphed});
        }
    }
}

/// The host's time of a step of two stages that launch nothing much, with a bound on what is under way.
template <class Kit>
BoundRow bound_row(const std::shared_ptr<Kit>& kit, const std::string& name, int in_flight) {
    using B = typename Kit::Backend;
    using Stream = sluice::BasicStreamRef<B>;
    const auto pipeline = std::make_shared<sluice::AnyPipeline<int, B>>(
        sluice::Stages{
            sluice::Stage{"first", [kit](Stream stream, const int&, Nothing&) { kit->empty(stream); }},
            sluice::Stage{"last", [kit](Stream stream, Nothing&) { kit->empty(stream); }}},
        sluice::Slots{make_nothing}, sluice::PipelineOptions{.in_flight = in_flight});
    return {name, [pipeline] {
                return host_time(
                    Kit::burst_steps, [&] { pipeline->submit(0); }, [&] { pipeline->finish(); });
            }};
}

} // namespace bench::live

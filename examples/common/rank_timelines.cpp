#include <common/rank_timelines.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>
#include <unistd.h>
#include <utility>

namespace examples {
namespace {

class Writer {
public:
    template <class T>
    void add(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&value);
        bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    }
    void add(const std::string& text) {
        add(text.size());
        bytes_.insert(bytes_.end(), text.begin(), text.end());
    }
    std::vector<std::uint8_t> bytes() && { return std::move(bytes_); }

private:
    std::vector<std::uint8_t> bytes_;
};

class Reader {
public:
    explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    template <class T>
    T get() {
        T value;
        std::memcpy(&value, take(sizeof value), sizeof value);
        return value;
    }
    std::string text() {
        const auto size = get<std::size_t>();
        return {reinterpret_cast<const char*>(take(size)), size};
    }
    bool at_end() const { return bytes_.empty(); }

private:
    const std::uint8_t* take(std::size_t size) {
        if (size > bytes_.size())
            throw sluice::Error("a rank's timeline ends too early; expected all ranks to run one program");
        const std::uint8_t* const taken = bytes_.data();
        bytes_ = bytes_.subspan(size);
        return taken;
    }

    std::span<const std::uint8_t> bytes_;
};

/// Rows or counters: what there is of either, by name and unit.
template <class Named>
void add_names(Writer& to, const std::vector<Named>& all) {
    to.add(all.size());
    for (const Named& each : all) {
        to.add(each.name);
        to.add(each.unit);
    }
}
template <class Add>
void get_names(Reader& from, const Add& add) {
    for (auto left = from.get<std::size_t>(); left > 0; --left) {
        std::string name = from.text();
        add(std::move(name), from.text());
    }
}

/// The work on a batch.
struct Work {
    double begin;
    double end;
};

/// By batch, the work on the rows named `stage`, on the clock.
std::map<std::size_t, Work> work_of(const sluice::Timeline& timeline, const std::string& stage) {
    std::map<std::size_t, Work> batches;
    for (const sluice::TimelineSpan& span : timeline.spans()) {
        if (timeline.rows()[span.row].name != stage || span.kind == sluice::SpanKind::wait)
            continue;
        const Work work{timeline.clock_zero() + span.begin, timeline.clock_zero() + span.end};
        Work& whole = batches.try_emplace(span.batch, work).first->second;
        whole = {std::min(whole.begin, work.begin), std::max(whole.end, work.end)};
    }
    return batches;
}

} // namespace

std::vector<std::uint8_t> to_bytes(const RankTimeline& rank) {
    const sluice::Timeline& timeline = rank.timeline;
    Writer to;
    to.add(rank.rank);
    to.add(rank.host);
    to.add(timeline.title());
    to.add(timeline.sentence());
    to.add(timeline.clock_zero());
    add_names(to, timeline.rows());
    to.add(timeline.spans().size());
    for (const sluice::TimelineSpan& span : timeline.spans())
        to.add(span);
    add_names(to, timeline.counters());
    to.add(timeline.values().size());
    for (const sluice::TimelineValue& value : timeline.values())
        to.add(value);
    to.add(timeline.missing_edges().size());
    for (const sluice::MissingEdge& edge : timeline.missing_edges()) {
        for (const std::size_t number : {edge.from_row, edge.from_batch, edge.to_row, edge.to_batch})
            to.add(number);
        to.add(edge.text);
    }
    return std::move(to).bytes();
}

RankTimeline rank_timeline_of(std::span<const std::uint8_t> bytes) {
    Reader from(bytes);
    RankTimeline rank;
    rank.rank = from.get<std::int64_t>();
    rank.host = from.text();
    sluice::Timeline timeline(from.text());
    timeline.set_sentence(from.text());
    timeline.set_clock_zero(from.get<double>());
    get_names(from, [&](std::string name, std::string unit) {
        timeline.add_row(std::move(name), std::move(unit));
    });
    for (auto left = from.get<std::size_t>(); left > 0; --left)
        timeline.add(from.get<sluice::TimelineSpan>());
    get_names(from, [&](std::string name, std::string unit) {
        timeline.add_counter(std::move(name), std::move(unit));
    });
    for (auto left = from.get<std::size_t>(); left > 0; --left) {
        const auto value = from.get<sluice::TimelineValue>();
        timeline.add_value(value.counter, value.time, value.value);
    }
    for (auto left = from.get<std::size_t>(); left > 0; --left) {
        sluice::MissingEdge edge;
        for (std::size_t* const number : {&edge.from_row, &edge.from_batch, &edge.to_row, &edge.to_batch})
            *number = from.get<std::size_t>();
        edge.text = from.text();
        timeline.add_missing_edge(std::move(edge));
    }
    if (!from.at_end())
        throw sluice::Error("a rank's timeline is too long; expected all ranks to run one program");
    rank.timeline = std::move(timeline);
    return rank;
}

std::string host_name() {
    char name[256] = {}; // the longest name and its end
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::vector<RankCost> costs_of(const std::vector<RankTimeline>& ranks, const std::string& stage) {
    std::vector<std::map<std::size_t, Work>> work;
    std::map<std::size_t, double> last_begins; // of the batches that all have noted
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        work.push_back(work_of(ranks[i].timeline, stage));
        if (i == 0) {
            for (const auto& [batch, mine] : work[i])
                last_begins[batch] = mine.begin;
        }
        std::erase_if(last_begins, [&](const auto& batch) { return !work[i].contains(batch.first); });
        for (auto& [batch, begin] : last_begins)
            begin = std::max(begin, work[i].at(batch).begin);
    }
    if (last_begins.size() < 2)
        return {};
    const auto batches = static_cast<double>(last_begins.size());
    std::vector<RankCost> costs;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        RankCost& cost = costs.emplace_back();
        cost.rank = ranks[i].rank;
        for (const auto& [batch, begin] : last_begins) {
            const Work& mine = work[i].at(batch);
            cost.stage += (mine.end - mine.begin) / batches;
            cost.ahead += (begin - mine.begin) / batches;
        }
        const double first = work[i].at(last_begins.begin()->first).end;
        const double last = work[i].at(last_begins.rbegin()->first).end;
        cost.step = (last - first) / (batches - 1);
    }
    return costs;
}

void add_costs(RunResult& run, const std::vector<RankCost>& costs) {
    if (costs.empty())
        return;
    std::vector<double> step, stage, ahead;
    for (const RankCost& cost : costs) {
        step.push_back(cost.step);
        stage.push_back(cost.stage);
        ahead.push_back(cost.ahead);
    }
    run.extra.emplace_back("rank_step_us", std::move(step));
    run.extra.emplace_back("rank_stage_us", std::move(stage));
    run.extra.emplace_back("rank_ahead_us", std::move(ahead));
}

} // namespace examples

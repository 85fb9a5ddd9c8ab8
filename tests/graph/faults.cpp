// Contract 5: any one call of graphs, captures, conditions and what works with them fails. On the host, where conditions can be
// decided by tasks.
#include <optional>
#include <string>
#include <vector>

#include <sluice/graph.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/branch_ops.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/fail_each_call.hpp"

namespace graph_faults {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Faulty<Host>;
using Ref = BasicStreamRef<B>;
using Numbers = DeviceBuffer<unsigned, B>;
using Values = std::vector<unsigned>;

Values read(const BasicStream<B>& stream, const Numbers& numbers) {
    Values values(numbers.size());
    copy_and_wait(stream, values, numbers);
    return values;
}
// Read where nothing fails any longer: CHECK would catch what is injected.
Values read_at_last(const BasicStream<B>& stream, const Numbers& numbers) {
    Fault::disarm();
    return read(stream, numbers);
}

GraphOptions quiet(GraphOptions options = {}) {
    options.on_refusal = nullptr; // a fault within a capture is one
    return options;
}

// x0 counts runs, x1 what comes of a copy.
struct Work {
    Numbers& x;
    PinnedBuffer<unsigned, B>& from;
    unsigned term;

    void operator()(Ref stream) const {
        copy(stream, x.span().subspan(1, 1), from);
        ops::multiply_add(stream.get(), x.data(), 1, term);
        ops::multiply_add(stream.get(), x.data() + 1, 2, term);
    }
};

} // namespace

TEST_CASE(
    "Contract 5: GraphCapture, any one call fails: an Error or an eager run, nothing leaked, usable again") {
    for (const GraphOptions& options : {quiet(), quiet({.capacity = 1}), quiet({.warmup = 0}),
                                        quiet({.check = false, .comparisons = 1}), quiet({.check = true})}) {
        fail_each_call<B>(
            [&] {
                const BasicStream<B> stream;
                Numbers x(2);
                PinnedBuffer<unsigned, B> from(1);
                from[0] = 7;
                GraphCapture<int, B> graphs(options);
                again_after_fault(
                    [&] {
                        fill_bytes(stream, x, 0);
                        for (const int key : {1, 2, 1, 2, 1, 1}) {
                            (void)graphs.run(stream, key, Work{x, from, static_cast<unsigned>(key)});
                        }
                        (void)graphs.recapture(stream, 1, Work{x, from, 1});
                        graphs.finish();
                        stream.sync();
                    },
                    [&] { stream.sync(); });
                CHECK(read_at_last(stream, x) == Values{9, 15});
                // It goes on to replay.
                (void)graphs.run(stream, 2, Work{x, from, 2});
                (void)graphs.run(stream, 2, Work{x, from, 2});
                if (graphs.refusal(2).empty())
                    CHECK(graphs.run(stream, 2, Work{x, from, 2}).replayed());
                else
                    (void)graphs.run(stream, 2, Work{x, from, 2});
                CHECK(read(stream, x) == Values{15, 16});
            },
            30);
    }
}

TEST_CASE(
    "Contract 5: captures and executables, any one call fails: an Error, nothing leaked, usable again") {
    fail_each_call<B>(
        [&] {
            const BasicStream<B> stream;
            Numbers x(2);
            PinnedBuffer<unsigned, B> from(1);
            from[0] = 5;
            again_after_fault(
                [&] {
                    fill_bytes(stream, x, 0);
                    const BasicGraph<B> one = capture(stream.ref(), Work{x, from, 1});
                    const BasicGraph<B> two = capture(stream.ref(), Work{x, from, 2});
                    BasicGraphExec<B> executable(one);
                    executable.upload(stream);
                    executable.launch(stream);
                    const bool updated = executable.update(two);
                    executable.launch(stream);
                    stream.sync();
                    CHECK(updated);
                },
                [&] { stream.sync(); });
            CHECK(read_at_last(stream, x) == Values{3, 12});
        },
        20);
}

TEST_CASE("Contract 5: graphs built by hand, any one call fails: an Error, nothing leaked, usable again") {
    fail_each_call<B>(
        [&] {
            const BasicStream<B> stream;
            Numbers x(2);
            PinnedBuffer<unsigned, B> from(2), to(2), other(2);
            from[0] = 3;
            from[1] = 4;
            BasicCondition<B> condition;
            unsigned* const first = x.data();
            again_after_fault(
                [&] {
                    BasicGraphBuilder<B> inner;
                    inner.host([first] { *first += 100; });
                    BasicGraphBuilder<B> builder;
                    const auto uploaded = builder.copy(x, from);
                    const auto filled = builder.fill(x.span().subspan(1, 1), 0, {uploaded});
                    const auto setter = builder.setter(condition);
                    const auto decided =
                        builder.host([setter, first] { setter.set(*first < 10 ? 1 : 0); }, {filled});
                    const auto branch = builder.if_nonzero(
                        condition, [&](BasicGraphBuilder<B>& body) { body.host([first] { *first += 10; }); },
                        {decided});
                    const auto child = builder.child(inner.graph(), {branch});
                    const auto joined = builder.empty({child});
                    const auto down = builder.copy(to, x, {joined});
                    builder.depends(down, uploaded);
                    auto executable = builder.instantiate();
                    executable.launch(stream);
                    stream.sync();
                    CHECK(to[0] == 113);
                    CHECK(to[1] == 0);
                    other[0] = 50;
                    executable.set(uploaded, x, other);
                    executable.set(filled, x.span().subspan(1, 1), 1);
                    executable.set(decided, [setter] { setter.set(0); });
                    executable.set(child, inner.graph());
                    executable.launch(stream);
                    stream.sync();
                    CHECK(to[0] == 150);
                    CHECK(to[1] == 0x01010101);
                },
                [&] { stream.sync(); });
        },
        25);
}

TEST_CASE("Contract 5: branches and loops, any one call fails: an Error, nothing leaked, usable again") {
    for (const bool captured : {false, true}) {
        CAPTURE(captured);
        fail_each_call<B>(
            [&] {
                const BasicStream<B> stream;
                Numbers x(1);
                BasicCondition<B> again, below;
                GraphCapture<int, B> graphs(quiet({.warmup = 0}));
                const auto work = [&](Ref s) {
                    while_nonzero(s, again, [&](Ref body) {
                        ops::multiply_add(body.get(), x.data(), 1, 3);
                        ops::decide_below(body.get(), again.setter(body), x.data(), 20);
                    });
                    ops::decide_below(s.get(), below.setter(s), x.data(), 22);
                    if_else(
                        s, below, [&](Ref body) { ops::multiply_add(body.get(), x.data(), 1, 100); },
                        [&](Ref body) { ops::multiply_add(body.get(), x.data(), 1, 200); });
                };
                again_after_fault(
                    [&] {
                        for (int round = 0; round < 2; ++round) {
                            fill_bytes(stream, x, 0);
                            if (captured)
                                (void)graphs.run(stream, 1, work);
                            else
                                work(stream.ref());
                        }
                        stream.sync();
                    },
                    [&] { stream.sync(); });
                CHECK(read_at_last(stream, x) == Values{121});
            },
            captured ? 25 : 20);
    }
}

TEST_CASE(
    "Contract 5: DeviceScalar and PingPong, any one call fails: an Error, nothing leaked, usable again") {
    fail_each_call<B>(
        [&] {
            const BasicStream<B> stream;
            std::optional<DeviceScalar<unsigned, B>> scalar(std::in_place, 1u, 2);
            PingPong<unsigned, B> pair(2);
            again_after_fault(
                [&] {
                    unsigned seen = 0;
                    for (const unsigned value : {5u, 6u, 7u, 8u}) {
                        scalar->set(stream, value);
                        seen = scalar->value_and_wait(stream);
                        CHECK(seen == value);
                    }
                    pair.reset(stream);
                    pair.swap(stream);
                    const auto second = pair.front_and_wait(stream);
                    CHECK(second.data() == pair.second().data());
                    pair.swap(stream);
                    const auto first = pair.front_and_wait(stream);
                    CHECK(first.data() == pair.first().data());
                    pair.swap(stream);
                    pair.reset(stream);
                    const auto home = pair.front_and_wait(stream);
                    CHECK(home.data() == pair.first().data());
                },
                [&] { stream.sync(); });
        },
        40);
}

TEST_CASE("a swap that fails half way has changed nothing") {
    const BasicStream<B> stream;
    PingPong<unsigned, B> pair(2);
    const auto places = [&] {
        Fault::disarm();
        stream.sync();
        const auto view = pair.view();
        return std::pair{view.front(), view.back()};
    };
    const std::pair before{pair.first().data(), pair.second().data()};
    bool failed = true;
    for (long call = 1; failed; ++call) {
        CAPTURE(call);
        Fault::arm(call);
        try {
            pair.swap(stream);
            failed = false;
        } catch (const Error& error) {
            CHECK(contains(error.what(), Fault::name));
            CHECK(places() == before);
        }
    }
    CHECK(places() == std::pair{before.second, before.first});
}

} // namespace graph_faults

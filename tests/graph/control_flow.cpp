// Branches and loops: the same code run at once and captured, with equal results.
#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sluice/graph/capture.hpp>
#include <sluice/graph/control_flow.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/branch_ops.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace graph_control_flow {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
using TestCondition = BasicCondition<B>;
using Numbers = DeviceBuffer<unsigned, B>;

unsigned* at(Numbers& numbers, std::size_t index) { return numbers.data() + index; }

void put(const BasicStream<B>& stream, Numbers& to, const std::vector<unsigned>& values) {
    copy_and_wait(stream, to, values);
}
std::vector<unsigned> read(const BasicStream<B>& stream, const Numbers& from) {
    std::vector<unsigned> values(from.size());
    copy_and_wait(stream, values, from);
    return values;
}

// What `work` makes of each of `inputs`: run at once, and by one graph that is launched for each.
template <class Work>
std::vector<std::vector<unsigned>> eager(const std::vector<std::vector<unsigned>>& inputs, Work work) {
    const BasicStream<B> stream;
    Numbers numbers(inputs.front().size());
    std::vector<std::vector<unsigned>> results;
    for (const auto& input : inputs) {
        put(stream, numbers, input);
        work(stream.ref(), numbers);
        results.push_back(read(stream, numbers));
    }
    return results;
}
template <class Work>
std::vector<std::vector<unsigned>> captured(const std::vector<std::vector<unsigned>>& inputs, Work work) {
    const BasicStream<B> stream;
    Numbers numbers(inputs.front().size());
    const BasicGraph<B> graph = capture(stream, [&](Ref s) { work(s, numbers); });
    const BasicGraphExec<B> executable(graph);
    std::vector<std::vector<unsigned>> results;
    for (const auto& input : inputs) {
        put(stream, numbers, input);
        executable.launch(stream);
        results.push_back(read(stream, numbers));
    }
    return results;
}

// Whether a node can have several bodies, which came with CUDA 12.8.
bool has_several_bodies() {
#if defined(SLUICE_TEST_CUDA)
    int driver = 0;
    REQUIRE(cudaDriverGetVersion(&driver) == cudaSuccess);
    return CUDART_VERSION >= 12080 && driver >= 12080;
#else
    return true;
#endif
}

// Checks both against what is expected of each input.
template <class Work>
void check_both(const std::vector<std::vector<unsigned>>& inputs,
                const std::vector<std::vector<unsigned>>& expected, Work work) {
    CHECK(eager(inputs, work) == expected);
    CHECK(captured(inputs, work) == expected);
}

// The same for work with a node of several bodies, which older versions of CUDA are to refuse.
template <class Work>
void check_several_bodies(const std::vector<std::vector<unsigned>>& inputs,
                          const std::vector<std::vector<unsigned>>& expected, Work work) {
    if (has_several_bodies()) {
        check_both(inputs, expected, work);
        return;
    }
    CHECK(eager(inputs, work) == expected);
    CHECK(contains(text_of([&] { (void)captured(inputs, work); }), "needs CUDA 12.8, of driver and toolkit"));
}

} // namespace

TEST_CASE("if runs its body when the condition holds") {
    TestCondition condition;
    check_both({{3}, {30}, {4}, {10}}, {{3 * 2 + 1 + 100}, {130}, {4 * 2 + 1 + 100}, {110}},
               [&](Ref s, Numbers& x) {
                   ops::decide_below(s, condition.setter(s), x.data(), 10);
                   if_nonzero(s, condition, [&](Ref body) { ops::multiply_add(body, x.data(), 2, 1); });
                   ops::multiply_add(s, x.data(), 1, 100);
               });
}

TEST_CASE("if, else runs one of two") {
    TestCondition condition;
    check_several_bodies({{3}, {30}, {9}, {10}}, {{16}, {94}, {46}, {34}}, [&](Ref s, Numbers& x) {
        ops::decide_below(s, condition.setter(s), x.data(), 10);
        if_else(
            s, condition, [&](Ref body) { ops::multiply_add(body, x.data(), 5, 1); },
            [&](Ref body) {
                ops::multiply_add(body, x.data(), 1, 1);
                ops::multiply_add(body, x.data(), 3, 1);
            });
    });
}

TEST_CASE("a setter of CUDA's says that the host cannot decide, and the Host backend's decides") {
    TestCondition condition;
    const BasicStream<B> stream;
    const ConditionSetter setter = condition.setter(stream);
    if constexpr (KernelGraphBackend<B>) {
        CHECK(contains(text_of([&] { setter.set(1); }), "was used on the host"));
        CHECK(contains(text_of([&] { (void)setter.get(); }), "pass it to a kernel"));
    } else {
        setter.set(5);
        CHECK(setter.get() == 5);
    }
}

TEST_CASE("while looks first when a setter was given out before") {
    TestCondition condition;
    check_both({{0}, {7}, {99}, {100}, {1000}}, {{102}, {100}, {102}, {100}, {1000}}, [&](Ref s, Numbers& x) {
        ops::decide_below(s, condition.setter(s), x.data(), 100);
        while_nonzero(s, condition, [&](Ref body) {
            ops::multiply_add(body, x.data(), 1, 3);
            ops::decide_below(body, condition.setter(body), x.data(), 100);
        });
    });
    CHECK(eager({{7}}, [&](Ref s, Numbers& x) {
              ops::decide_below(s, condition.setter(s), x.data(), 100);
              while_nonzero(s, condition, [&](Ref body) {
                  ops::multiply_add(body, x.data(), 1, 50);
                  ops::decide_below(body, condition.setter(body), x.data(), 100);
              });
          }) == std::vector<std::vector<unsigned>>{{107}});
}

TEST_CASE("while without a setter before runs its body once before it looks") {
    TestCondition condition;
    // Twice with the same graph: the first run of the body depends on no earlier launch.
    check_both({{0}, {99}, {100}, {1000}, {2}}, {{100}, {100}, {101}, {1001}, {100}}, [&](Ref s, Numbers& x) {
        while_nonzero(s, condition, [&](Ref body) {
            ops::multiply_add(body, x.data(), 1, 1);
            ops::decide_below(body, condition.setter(body), x.data(), 100);
        });
    });
}

TEST_CASE("an unrolled loop gives the same as a plain one when its work heeds the condition") {
    TestCondition condition;
    for (const int unroll : {1, 2, 3, 8}) {
        CAPTURE(unroll);
        check_both({{0}, {99}, {100}, {95}, {0}}, {{100}, {100}, {101}, {100}, {100}},
                   [&](Ref s, Numbers& x) {
                       while_nonzero(s, condition,
                                     [&](Ref body) {
                                         ops::add_guarded(body, condition.setter(body), x.data(), 1, 100);
                                     },
                                     {.unroll = unroll});
                   });
        check_both({{0}, {100}}, {{100}, {100}}, [&](Ref s, Numbers& x) {
            ops::decide_below(s, condition.setter(s), x.data(), 100);
            while_nonzero(s, condition,
                          [&](Ref body) { ops::add_guarded(body, condition.setter(body), x.data(), 1, 100); },
                          {.unroll = unroll});
        });
    }
}

TEST_CASE("select runs the body that the condition names, or none") {
    TestCondition condition;
    check_several_bodies({{0}, {1}, {2}, {3}, {4000000000u}}, {{10}, {21}, {32}, {3}, {4000000000u}},
                         [&](Ref s, Numbers& x) {
                             ops::decide(s, condition.setter(s), x.data());
                             sluice::select(
                                 s, condition, [&](Ref body) { ops::multiply_add(body, x.data(), 1, 10); },
                                 [&](Ref body) { ops::multiply_add(body, x.data(), 1, 20); },
                                 [&](Ref body) { ops::multiply_add(body, x.data(), 1, 30); });
                         });
}

TEST_CASE("an if within a while, and a while within a while") {
    TestCondition outer, inner;
    // The collatz steps of x, counted in y.
    const auto collatz = [&](Ref s, Numbers& n) {
        while_nonzero(s, outer, [&](Ref body) {
            ops::multiply_add(body, at(n, 1), 1, 1);
            ops::decide_below(body, inner.setter(body), at(n, 1), 5);
            if_else(
                body, inner, [&](Ref yes) { ops::multiply_add(yes, at(n, 0), 2, 1); },
                [&](Ref no) { ops::multiply_add(no, at(n, 0), 3, 2); });
            ops::decide_below(body, outer.setter(body), at(n, 0), 2000);
        });
    };
    const auto expected = [](unsigned x) {
        unsigned y = 0;
        do {
            ++y;
            x = y < 5 ? 2 * x + 1 : 3 * x + 2;
        } while (x < 2000);
        return std::vector<unsigned>{x, y};
    };
    check_several_bodies({{1, 0}, {700, 0}, {5000, 0}}, {expected(1), expected(700), expected(5000)},
                         collatz);

    // x counts all runs of the inner loop, y those of the outer one, z is the inner one's own.
    for (const bool look_first : {false, true}) {
        CAPTURE(look_first);
        check_both({{0, 0, 0}, {5, 2, 9}}, {{12, 4, 3}, {5 + 6, 4, 3}}, [&](Ref s, Numbers& n) {
            while_nonzero(s, outer, [&](Ref body) {
                fill_bytes(body, n.span().subspan(2, 1), 0);
                if (look_first)
                    ops::decide_below(body, inner.setter(body), at(n, 2), 3);
                while_nonzero(body, inner, [&](Ref deeper) {
                    ops::multiply_add(deeper, at(n, 0), 1, 1);
                    ops::multiply_add(deeper, at(n, 2), 1, 1);
                    ops::decide_below(deeper, inner.setter(deeper), at(n, 2), 3);
                });
                ops::multiply_add(body, at(n, 1), 1, 1);
                ops::decide_below(body, outer.setter(body), at(n, 1), 4);
            });
        });
    }
}

TEST_CASE("one condition serves several branches, one after another, and several captures") {
    TestCondition condition;
    const auto work = [&](Ref s, Numbers& x) {
        for (const unsigned limit : {10u, 20u, 30u}) {
            ops::decide_below(s, condition.setter(s), x.data(), limit);
            if_nonzero(s, condition, [&](Ref body) { ops::multiply_add(body, x.data(), 2, 1); });
        }
    };
    for (int time = 0; time < 3; ++time)
        check_both({{9}, {10}, {25}, {31}, {2}}, {{39}, {43}, {51}, {31}, {23}}, work);
}

TEST_CASE("a cache of graphs runs branches at once first, then captured, with the same results") {
    const BasicStream<B> stream;
    TestCondition again, even;
    Numbers x(2);
    GraphCapture<NoKey, B> graphs;
    for (unsigned i = 0; i < 6; ++i) {
        put(stream, x, {i, i % 2});
        graphs.run(stream.ref(), [&](Ref s) {
            while_nonzero(s, again, [&](Ref body) {
                ops::multiply_add(body, at(x, 0), 1, 7);
                ops::decide_below(body, again.setter(body), at(x, 0), 100);
            });
            ops::decide_below(s, even.setter(s), at(x, 1), 1);
            if_nonzero(s, even, [&](Ref body) { ops::multiply_add(body, at(x, 1), 0, 50); });
        });
        unsigned expected = i;
        do {
            expected += 7;
        } while (expected < 100);
        CHECK(read(stream, x) == std::vector<unsigned>{expected, i % 2 == 0 ? 50u : 1u});
    }
    CHECK(graphs.counters().refusals == 0);
    CHECK(graphs.counters().replays == 5);
}

TEST_CASE("a capture that came to nothing leaves the condition usable") {
    const BasicStream<B> stream;
    TestCondition condition;
    Numbers x(1);
    for (int time = 0; time < 3; ++time) {
        const auto before = [&](Ref s) {
            ops::decide_below(s, condition.setter(s), x.data(), 10);
            throw std::runtime_error("before the branch");
        };
        const auto within = [&](Ref s) {
            ops::decide_below(s, condition.setter(s), x.data(), 10);
            if_nonzero(s, condition, [](Ref) { throw std::runtime_error("within the branch"); });
        };
        CHECK_THROWS_WITH_AS((void)capture(stream, before), "before the branch", std::runtime_error);
        CHECK_THROWS_WITH_AS((void)capture(stream, within), "within the branch", std::runtime_error);
        check_both({{3}, {30}}, {{7}, {30}}, [&](Ref s, Numbers& y) {
            ops::decide_below(s, condition.setter(s), y.data(), 10);
            if_nonzero(s, condition, [&](Ref body) { ops::multiply_add(body, y.data(), 2, 1); });
        });
    }
}

TEST_CASE("branches refuse what makes no sense, at once and captured alike") {
    const BasicStream<B> stream;
    Numbers x(1);
    fill_bytes(stream, x, 1);
    stream.sync();
    const auto nothing = [](Ref) {};
    const auto refused = [&](const char* part, auto work) {
        CAPTURE(part);
        CHECK(contains(text_of([&] { work(stream.ref()); }), part));
        CHECK(contains(text_of([&] { (void)capture(stream, work); }), part));
    };

    TestCondition condition;
    refused("has no value here", [&](Ref s) { if_nonzero(s, condition, nothing); });
    refused("select: the condition has no value here", [&](Ref s) { sluice::select(s, condition, nothing); });
    refused("has no value here", [&](Ref s) { // a setter serves one branch
        ops::decide(s, condition.setter(s), x.data());
        if_nonzero(s, condition, [&](Ref body) { ops::multiply_add(body, x.data(), 1, 0); });
        if_nonzero(s, condition, nothing);
    });
    refused("take another", [&](Ref s) {
        ops::decide(s, condition.setter(s), x.data());
        if_nonzero(s, condition, [&](Ref body) { (void)condition.setter(body); });
    });
    refused("take another", [&](Ref s) {
        while_nonzero(s, condition, [&](Ref body) { if_nonzero(body, condition, nothing); });
    });
    for (const int unroll : {0, std::numeric_limits<int>::max()}) {
        refused(("WhileOptions::unroll is " + std::to_string(unroll) + "; expected 1 to 1048576").c_str(),
                [&](Ref s) { while_nonzero(s, condition, nothing, {.unroll = unroll}); });
    }

    refused("while_nonzero: the body asks for no setter", [&](Ref s) { // it would never end
        while_nonzero(s, condition, [&](Ref body) { ops::multiply_add(body, x.data(), 1, 1); });
    });
    stream.sync();

    // A value from outside of a capture is of no use in it.
    ops::decide(stream.get(), condition.setter(stream), x.data());
    CHECK(contains(text_of([&] { (void)capture(stream, [&](Ref s) { if_nonzero(s, condition, nothing); }); }),
                   "has no value here"));

    TestCondition other(std::move(condition));
    refused("moved from", [&](Ref s) { (void)condition.setter(s); });
    refused("moved from", [&](Ref s) { while_nonzero(s, condition, nothing); });
    ops::decide(stream.get(), other.setter(stream), x.data());
    bool ran = false;
    if_nonzero(stream, other, [&](Ref) { ran = true; });
    CHECK(ran);
}

TEST_CASE("a loop whose body throws leaves nothing under way that uses its condition") {
    const BasicStream<B> stream;
    std::string text;
    try {
        TestCondition condition;
        stream.enqueue([] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); });
        while_nonzero(stream, condition, [](Ref) { throw std::runtime_error("the body"); });
    } catch (const std::runtime_error& error) {
        text = error.what();
        CHECK(stream.is_done());
    }
    CHECK(text == "the body");
}

TEST_CASE("a condition serves the streams of its own device") {
    if (B::device_count() < 2)
        return;
    TestCondition condition;
    const DeviceGuard<B> guard(1);
    const BasicStream<B> stream;
    CHECK(contains(text_of([&] { (void)condition.setter(stream); }),
                   "the stream belongs to device 1, the condition to device 0"));
    CHECK(contains(text_of([&] { while_nonzero(stream, condition, [](Ref) {}); }),
                   "the stream belongs to device 1, the condition to device 0"));
}

} // namespace graph_control_flow

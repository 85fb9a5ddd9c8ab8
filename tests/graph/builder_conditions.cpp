// Branches and loops in graphs that are made node by node.
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <sluice/graph/graph_builder.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/branch_ops.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace graph_builder_conditions {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Builder = BasicGraphBuilder<B>;
using TestCondition = BasicCondition<B>;
using Numbers = DeviceBuffer<unsigned, B>;
using Values = std::vector<unsigned>;

// What `build(builder, numbers)` makes of each of `inputs`, by one graph that is launched for each, one after another.
template <class Build>
std::vector<Values> results(const std::vector<Values>& inputs, Build build) {
    const BasicStream<B> stream;
    Numbers numbers(inputs.front().size());
    Builder builder;
    build(builder, numbers);
    auto executable = builder.instantiate();
    std::vector<Values> all;
    for (const Values& input : inputs) {
        copy_and_wait(stream, numbers, input);
        executable.launch(stream);
        Values values(numbers.size());
        copy_and_wait(stream, values, numbers);
        all.push_back(values);
    }
    return all;
}

// Whether a node can have several bodies, which came with CUDA 12.8. Says so where it cannot.
template <class Build>
bool has_several_bodies([[maybe_unused]] Build build) {
#if defined(SLUICE_TEST_CUDA)
    int driver = 0;
    REQUIRE(cudaDriverGetVersion(&driver) == cudaSuccess);
    if (CUDART_VERSION < 12080 || driver < 12080) {
        CHECK(contains(text_of([&] { (void)results({{0}}, build); }),
                       "needs CUDA 12.8, of driver and toolkit"));
        return false;
    }
#endif
    return true;
}

unsigned* at(Numbers& numbers, std::size_t index) { return numbers.data() + index; }

} // namespace

TEST_CASE("built graphs: if runs its body when the condition holds, in each launch anew") {
    TestCondition condition;
    CHECK(results({{3}, {30}, {4}, {10}}, [&](Builder& builder, Numbers& x) {
              const auto decided = ops::decide_below(builder, builder.setter(condition), x.data(), 10);
              const auto branch = builder.if_nonzero(condition,
                                                     [&](Builder& body) {
                                                         const auto first =
                                                             ops::multiply_add(body, x.data(), 2, 0);
                                                         ops::multiply_add(body, x.data(), 1, 1, {first});
                                                     },
                                                     {decided});
              ops::multiply_add(builder, x.data(), 1, 100, {branch});
              CHECK(builder.graph().nodes() == 3);
          }) == std::vector<Values>{{107}, {130}, {109}, {110}});
}

TEST_CASE(
    "built graphs: a branch comes after what decides it, also where its list of nodes does not say so") {
    TestCondition condition, other;
    // Long before the node that decides: without an edge, the branch looks first.
    const auto late = [&](Builder& builder, Numbers& x) {
        BasicNode<B> last = ops::multiply_add(builder, at(x, 1), 1, 1);
        for (int i = 0; i < 50; ++i)
            last = ops::multiply_add(builder, at(x, 1), 1, 1, {last});
        return last;
    };
    CHECK(results({{3, 0}, {30, 0}, {4, 0}, {10, 0}}, [&](Builder& builder, Numbers& x) {
              const auto setter = builder.setter(condition);
              const auto last = late(builder, x);
              ops::decide_below(builder, setter, x.data(), 10, {last});
              builder.if_nonzero(condition, [&](Builder& body) { ops::multiply_add(body, x.data(), 2, 1); });
              CHECK(builder.graph().nodes() == 53);
          }) == std::vector<Values>{{7, 51}, {30, 51}, {9, 51}, {10, 51}});
    // Two that are decided side by side, and a loop that looks first.
    CHECK(results({{3, 0}, {30, 5}}, [&](Builder& builder, Numbers& x) {
              const auto low = builder.setter(condition);
              const auto again = builder.setter(other);
              ops::decide_below(builder, low, x.data(), 10);
              ops::decide_below(builder, again, at(x, 1), 5);
              builder.if_nonzero(condition, [&](Builder& body) { ops::multiply_add(body, x.data(), 2, 1); });
              builder.while_nonzero(other, [&](Builder& body) {
                  const auto added = ops::multiply_add(body, at(x, 1), 1, 1);
                  ops::decide_below(body, body.setter(other), at(x, 1), 5, {added});
              });
          }) == std::vector<Values>{{7, 5}, {30, 5}});
    Numbers x(1);
    Builder builder;
    const auto decided = ops::decide_below(builder, builder.setter(condition), x.data(), 10);
    builder.if_nonzero(condition, [&](Builder& body) { ops::multiply_add(body, x.data(), 2, 1); }, {decided});
    CHECK(builder.graph().edges() == 1);
}

TEST_CASE("built graphs: a branch waits for what was added since the setter of its own condition, and for "
          "nothing before") {
    TestCondition condition, other;
    Numbers x(2);
    Builder builder;
    ops::decide_below(builder, builder.setter(condition), x.data(), 10);
    ops::decide_below(builder, builder.setter(other), at(x, 1), 10);
    builder.if_nonzero(other, [&](Builder& body) { ops::multiply_add(body, at(x, 1), 2, 1); });
    CHECK(builder.graph().edges() == 1); // from the second
    // A setter that is taken twice counts from the first time, and once.
    ops::decide_below(builder, builder.setter(condition), x.data(), 10);
    builder.if_nonzero(condition, [&](Builder& body) { ops::multiply_add(body, x.data(), 2, 1); });
    CHECK(builder.graph().edges() == 1 + 3); // from all that decide
    ops::decide_below(builder, builder.setter(condition), x.data(), 10);
    builder.if_nonzero(condition, [&](Builder& body) { ops::multiply_add(body, x.data(), 2, 1); });
    CHECK(builder.graph().edges() == 1 + 3 + 1); // from the last
}

TEST_CASE("built graphs: a builder that another one is assigned to, or made of, knows what decides") {
    TestCondition condition;
    Numbers x(1);
    Builder first;
    ops::decide_below(first, first.setter(condition), x.data(), 10);
    Builder second;
    second = std::move(first);
    ops::multiply_add(second, x.data(), 1, 0);
    Builder third(std::move(second));
    third.if_nonzero(condition, [&](Builder& body) { ops::multiply_add(body, x.data(), 2, 1); });
    CHECK(third.graph().nodes() == 3);
    // A kernel's arguments tell that it decides nothing; a task may.
    CHECK(third.graph().edges() == (std::is_same_v<B, Host> ? 2u : 1u));
}

TEST_CASE("built graphs: if, else runs one of two") {
    TestCondition condition;
    const auto build = [&](Builder& builder, Numbers& x) {
        const auto decided = ops::decide_below(builder, builder.setter(condition), x.data(), 10);
        builder.if_else(
            condition, [&](Builder& body) { ops::multiply_add(body, x.data(), 5, 1); },
            [&](Builder& body) {
                const auto first = ops::multiply_add(body, x.data(), 1, 1);
                ops::multiply_add(body, x.data(), 3, 1, {first});
            },
            {decided});
    };
    if (has_several_bodies(build))
        CHECK(results({{3}, {30}, {9}, {10}}, build) == std::vector<Values>{{16}, {94}, {46}, {34}});
}

TEST_CASE("built graphs: select runs the body that the condition names, or none") {
    TestCondition condition;
    const auto build = [&](Builder& builder, Numbers& x) {
        const auto decided = ops::decide(builder, builder.setter(condition), x.data());
        const auto adding = [&](unsigned term) {
            return [&x, term](Builder& body) { ops::multiply_add(body, x.data(), 1, term); };
        };
        builder.select(condition, {decided}, adding(10), adding(20), adding(30));
    };
    if (has_several_bodies(build)) {
        CHECK(results({{0}, {1}, {2}, {3}, {4000000000u}}, build) ==
              std::vector<Values>{{10}, {21}, {32}, {3}, {4000000000u}});
    }
}

TEST_CASE("built graphs: while looks first where a setter was given out before, and otherwise not") {
    TestCondition condition;
    const auto loop = [&](Builder& body, Numbers& x, unsigned term) {
        const auto added = ops::multiply_add(body, x.data(), 1, term);
        ops::decide_below(body, body.setter(condition), x.data(), 100, {added});
    };
    CHECK(results({{0}, {7}, {99}, {100}, {1000}, {2}}, [&](Builder& builder, Numbers& x) {
              const auto decided = ops::decide_below(builder, builder.setter(condition), x.data(), 100);
              builder.while_nonzero(condition, [&](Builder& body) { loop(body, x, 3); }, {decided});
          }) == std::vector<Values>{{102}, {100}, {102}, {100}, {1000}, {101}});
    // Each launch begins anew, whatever the last one came to.
    CHECK(results({{0}, {99}, {100}, {1000}, {2}}, [&](Builder& builder, Numbers& x) {
              const auto loops = builder.while_nonzero(condition, [&](Builder& body) { loop(body, x, 1); });
              ops::multiply_add(builder, x.data(), 2, 0, {loops});
          }) == std::vector<Values>{{200}, {200}, {202}, {2002}, {200}});
}

TEST_CASE("built graphs: an if within a while, and a while within a while") {
    TestCondition outer, inner;
    // x counts all runs of the inner loop, y those of the outer one, z is the inner one's own.
    CHECK(results({{0, 0, 0}, {5, 2, 9}}, [&](Builder& builder, Numbers& n) {
              builder.while_nonzero(outer, [&](Builder& body) {
                  const auto cleared = body.fill(n.span().subspan(2, 1), 0);
                  const auto decided = ops::decide_below(body, body.setter(inner), at(n, 2), 3, {cleared});
                  const auto loop = body.while_nonzero(
                      inner,
                      [&](Builder& deeper) {
                          const auto x = ops::multiply_add(deeper, at(n, 0), 1, 1);
                          const auto z = ops::multiply_add(deeper, at(n, 2), 1, 1, {x});
                          ops::decide_below(deeper, deeper.setter(inner), at(n, 2), 3, {z});
                      },
                      {decided});
                  const auto y = ops::multiply_add(body, at(n, 1), 1, 1, {loop});
                  ops::decide_below(body, body.setter(outer), at(n, 1), 4, {y});
              });
          }) == std::vector<Values>{{12, 4, 3}, {11, 4, 3}});

    // Doubles x while it is below 50, and counts in y how often it was below 10 before.
    CHECK(results({{1, 0}, {20, 0}}, [&](Builder& builder, Numbers& n) {
              builder.while_nonzero(outer, [&](Builder& body) {
                  const auto decided = ops::decide_below(body, body.setter(inner), at(n, 0), 10);
                  const auto branch = body.if_nonzero(
                      inner, [&](Builder& low) { ops::multiply_add(low, at(n, 1), 1, 1); }, {decided});
                  const auto doubled = ops::multiply_add(body, at(n, 0), 2, 0, {branch});
                  ops::decide_below(body, body.setter(outer), at(n, 0), 50, {doubled});
              });
          }) == std::vector<Values>{{64, 4}, {80, 0}});
}

TEST_CASE("built graphs: one condition serves several branches and builders, one after another") {
    TestCondition condition;
    for (int time = 0; time < 2; ++time) {
        CHECK(results({{9}, {10}, {25}, {31}, {2}}, [&](Builder& builder, Numbers& x) {
                  Builder::Nodes after;
                  for (const unsigned limit : {10u, 20u, 30u}) {
                      const auto decided =
                          ops::decide_below(builder, builder.setter(condition), x.data(), limit, after);
                      const auto branch = builder.if_nonzero(
                          condition, [&](Builder& body) { ops::multiply_add(body, x.data(), 2, 1); },
                          {decided});
                      after.assign(1, branch);
                  }
              }) == std::vector<Values>{{39}, {43}, {51}, {31}, {23}});
    }
}

TEST_CASE("built graphs: an executable outlives its builder, with the tasks and nodes of bodies") {
    TestCondition condition;
    const BasicStream<B> stream;
    Numbers x(1);
    std::unique_ptr<BasicBuiltGraphExec<B>> executable;
    {
        Builder first;
        Builder builder(std::move(first));
        const auto kept = std::make_shared<int>(1);
        builder.while_nonzero(condition, [&](Builder& body) {
            const auto added = ops::multiply_add(body, x.data(), 1, 1);
            ops::decide_below(body, body.setter(condition), x.data(), 5, {added});
        });
        executable = std::make_unique<BasicBuiltGraphExec<B>>(builder.instantiate());
    }
    fill_bytes(stream, x, 0);
    executable->launch(stream);
    Values values(1);
    copy_and_wait(stream, values, x);
    CHECK(values == Values{5});
}

TEST_CASE("built graphs: branches refuse what makes no sense") {
    Numbers x(1);
    TestCondition condition, other;
    const auto nothing = [](Builder&) {};
    const auto refused = [&](const char* part, auto build) {
        CAPTURE(part);
        Builder builder;
        CHECK(contains(text_of([&] { build(builder); }), part));
    };
    refused("if_nonzero: the condition has no value here",
            [&](Builder& b) { b.if_nonzero(condition, nothing); });
    refused("select: the condition has no value here", [&](Builder& b) { b.select(condition, {}, nothing); });
    refused("has no value here", [&](Builder& b) { // a setter serves one branch
        ops::decide(b, b.setter(condition), x.data());
        b.if_nonzero(condition, nothing);
        b.if_nonzero(condition, nothing);
    });
    refused("has no value here", [&](Builder& b) { // and one builder
        Builder another;
        (void)another.setter(condition);
        b.if_nonzero(condition, nothing);
    });
    refused("has no value here", [&](Builder& b) { // a loop within a loop has to look first
        b.while_nonzero(condition, [&](Builder& body) { body.while_nonzero(other, nothing); });
    });
    refused("take another", [&](Builder& b) {
        ops::decide(b, b.setter(condition), x.data());
        b.if_nonzero(condition, [&](Builder& body) { (void)body.setter(condition); });
    });
    refused("if_nonzero: no node calls set() of the condition", [&](Builder& b) {
        ops::multiply_add(b, x.data(), 1, 1); // before the setter was given out
        (void)b.setter(condition);
        b.empty();
        b.if_nonzero(condition, nothing);
    });
    refused("take another", [&](Builder& b) {
        b.while_nonzero(condition, [&](Builder& body) { body.if_nonzero(condition, nothing); });
    });
    refused("while_nonzero: the body asks for no setter", [&](Builder& b) { // it would never end
        b.while_nonzero(condition, [&](Builder& body) { ops::multiply_add(body, x.data(), 1, 1); });
    });
    refused("belongs to another builder", [&](Builder& b) {
        const auto before = b.empty();
        b.while_nonzero(condition, [&](Builder& body) { body.empty({before}); });
    });
    refused("instantiate that one", [&](Builder& b) {
        b.while_nonzero(condition, [&](Builder& body) {
            body.empty();
            (void)body.instantiate();
        });
    });
    refused("was moved from", [&](Builder& b) {
        b.while_nonzero(condition, [&](Builder& body) { const Builder gone(std::move(body)); });
    });

    // After a body has thrown there is nothing to be had from the builder; the condition is usable again.
    Builder builder;
    const auto first = builder.empty(), second = builder.empty();
    CHECK_THROWS_WITH_AS(
        builder.while_nonzero(condition, [](Builder&) { throw std::runtime_error("within"); }), "within",
        std::runtime_error);
    CHECK(contains(text_of([&] { builder.empty(); }), "build it anew"));
    CHECK(contains(text_of([&] { (void)builder.instantiate(); }), "build it anew"));
    CHECK(contains(text_of([&] { (void)builder.graph(); }), "build it anew"));
    CHECK(contains(text_of([&] { builder.depends(second, first); }), "build it anew"));
    builder = Builder();
    builder.while_nonzero(condition,
                          [&](Builder& body) { ops::decide(body, body.setter(condition), x.data()); });
    (void)builder.instantiate();

    TestCondition moved(std::move(condition));
    refused("moved from", [&](Builder& b) { (void)b.setter(condition); });
    refused("moved from", [&](Builder& b) { b.while_nonzero(condition, nothing); });
    if (B::device_count() > 1) {
        const DeviceGuard<B> guard(1);
        refused("belongs to device 0, and device 1 is current", [&](Builder& b) { (void)b.setter(moved); });
    }
}

#if defined(SLUICE_TEST_CUDA)
TEST_CASE("built graphs: a body that calls the host is refused on CUDA") {
    TestCondition condition;
    Builder builder;
    CHECK(
        contains(text_of([&] { builder.while_nonzero(condition, [](Builder& body) { body.host([] {}); }); }),
                 "cannot call the host on CUDA"));
}
#else
TEST_CASE("built graphs: tasks of a body are kept by the executable") {
    TestCondition condition;
    const BasicStream<B> stream;
    const auto count = std::make_shared<int>(0);
    {
        std::unique_ptr<BasicBuiltGraphExec<B>> executable;
        {
            Builder builder;
            builder.while_nonzero(condition, [&](Builder& body) {
                const auto setter = body.setter(condition);
                body.host([count, setter] { setter.set(++*count % 3 != 0); });
            });
            executable = std::make_unique<BasicBuiltGraphExec<B>>(builder.instantiate());
        }
        CHECK(count.use_count() > 1);
        executable->launch(stream);
        executable->launch(stream);
    }
    stream.sync();
    CHECK(*count == 6);
    CHECK(count.use_count() == 1);
}
#endif

} // namespace graph_builder_conditions

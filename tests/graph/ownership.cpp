// An owner destroys its graph or executable once, whatever it is moved onto.
#include <utility>

#include <sluice/graph/capture.hpp>

#include "support/alive.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace graph_ownership {

using namespace sluice;
using namespace sluice::test;

namespace {

template <class Owner, class Make>
void check_moves(Make&& make) {
    Owner target = make();
    const auto former = target.get();
    move_onto_itself(target);
    CHECK(target.get() == former);
    Owner moved = make();
    const auto native = moved.get();
    target = std::move(moved);
    CHECK(target.get() == native);
    Owner made{std::move(target)};
    CHECK(made.get() == native);
    target = make();
    CHECK(target.get() != native);
}

} // namespace

TEST_CASE_TEMPLATE("a graph is destroyed once, whatever it is moved onto", B, TestBackend) {
    const Alive before = alive_now<B>();
    check_moves<BasicGraph<B>>([] { return BasicGraph<B>{}; });
    CHECK(alive_now<B>() == before);
}

TEST_CASE_TEMPLATE("an executable is destroyed once, whatever it is moved onto", B, TestBackend) {
    const Alive before = alive_now<B>();
    {
        const BasicGraph<B> graph;
        check_moves<BasicGraphExec<B>>([&] { return BasicGraphExec<B>(graph); });
    }
    CHECK(alive_now<B>() == before);
}

} // namespace graph_ownership

// The owners that the library's own parts use: what they own ends once, and they are empty once it is another's.
#include <stdexcept>
#include <utility>

#include <sluice/backend/detail/owned.hpp>

#include "support/doctest.hpp"

namespace backend_owned {

using sluice::detail::make_owned;
using sluice::detail::Maybe;
using sluice::detail::Owned;

namespace {

struct Counted {
    static inline int alive = 0;
    static inline bool throws = false;

    explicit Counted(int of) : value(of) {
        if (throws)
            throw std::runtime_error("asked for");
        ++alive;
    }
    Counted(Counted&& other) noexcept : value(std::exchange(other.value, 0)) { ++alive; }
    Counted(const Counted&) = delete;
    Counted& operator=(Counted&&) = delete;
    virtual ~Counted() { --alive; }

    int value;
};

struct Derived final : Counted {
    static inline int ended = 0;
    using Counted::Counted;
    ~Derived() override { ++ended; }
};

} // namespace

TEST_CASE("an owner's value ends with it, or when it gets another") {
    {
        Owned<Counted> first = make_owned<Counted>(1);
        Owned<Counted> second = make_owned<Counted>(2);
        CHECK(Counted::alive == 2);
        first = std::move(second);
        CHECK(Counted::alive == 1);
        CHECK(first->value == 2);
        CHECK((*first).value == 2);
        CHECK(second == nullptr);
        Owned<Counted> third(std::move(first));
        CHECK_FALSE(first);
        CHECK(third.get()->value == 2);
        Counted* const given = third.give();
        CHECK(third == nullptr);
        CHECK(Counted::alive == 1);
        third = Owned<Counted>(given);
        third.reset();
        CHECK(Counted::alive == 0);
        third.reset();
    }
    CHECK(Counted::alive == 0);
}

TEST_CASE("an owner keeps its value where it is assigned to itself") {
    Owned<Counted> owned = make_owned<Counted>(7);
    Owned<Counted>& same = owned;
    owned = std::move(same);
    REQUIRE(owned);
    CHECK(owned->value == 7);
}

TEST_CASE("an owner of a base ends the derived value") {
    Derived::ended = 0;
    {
        Owned<Counted> owned = make_owned<Derived>(3);
        CHECK(owned->value == 3);
    }
    CHECK(Derived::ended == 1);
    CHECK(Counted::alive == 0);
}

TEST_CASE("a value in place begins and ends once") {
    {
        Maybe<Counted> maybe;
        CHECK_FALSE(maybe);
        CHECK(maybe.emplace(4).value == 4);
        CHECK(maybe->value == 4);
        CHECK(maybe.emplace(5).value == 5);
        CHECK(Counted::alive == 1);

        Maybe<Counted> other(std::move(maybe));
        CHECK((*other).value == 5);
        CHECK(Counted::alive == 2); // The one that was moved from goes on.
        other.reset();
        other.reset();
        CHECK(Counted::alive == 1);
        other = Maybe<Counted>(Counted(6));
        CHECK(other->value == 6);
        other = nullptr;
        CHECK_FALSE(other);
    }
    CHECK(Counted::alive == 0);
}

TEST_CASE("a value in place that cannot be made is none") {
    Maybe<Counted> maybe(Counted(8));
    Counted::throws = true;
    CHECK_THROWS_AS(maybe.emplace(9), std::runtime_error);
    Counted::throws = false;
    CHECK_FALSE(maybe);
    CHECK(Counted::alive == 0);
}

} // namespace backend_owned

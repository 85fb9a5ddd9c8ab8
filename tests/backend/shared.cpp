// Values that several own, and what watches them.
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <sluice/backend/detail/shared.hpp>

#include "support/doctest.hpp"

namespace backend_shared {

using sluice::detail::make_shared_value;
using sluice::detail::Shared;
using sluice::detail::Watched;

struct Base {
    int number = 0;
};
/// Says when it ends.
struct Value : Base {
    explicit Value(int& at_end, int number_of) : ended(at_end) { number = number_of; }
    Value(const Value&) = delete;
    Value& operator=(const Value&) = delete;
    ~Value() { ++ended; }
    int& ended;
};

TEST_CASE("shared values: the last owner ends them, also by the name of a base class or of none") {
    int ended = 0;
    Shared<const void> nameless;
    {
        Shared<Value> first = make_shared_value<Value>(ended, 7);
        const Shared<Base> base = first;
        Shared<const Value> constant = std::move(first);
        CHECK(first == nullptr);
        CHECK(base->number == 7);
        CHECK(constant.get() == static_cast<const Base*>(base.get()));
        nameless = constant;
        constant = nullptr;
        CHECK(ended == 0);
    }
    CHECK(ended == 0);
    const Shared<const void>& self = nameless;
    nameless = self;
    CHECK(ended == 0);
    nameless = nullptr;
    CHECK(ended == 1);
}

TEST_CASE("shared values: a part keeps the whole") {
    int ended = 0;
    Shared<int> part;
    {
        const Shared<Value> whole = make_shared_value<Value>(ended, 9);
        part = Shared<int>(whole, &whole->number);
    }
    CHECK(ended == 0);
    CHECK(*part == 9);
    part = nullptr;
    CHECK(ended == 1);
}

TEST_CASE("shared values: an observer gets the value as long as it has an owner") {
    int ended = 0;
    Watched<Value> watched;
    CHECK(watched.lock() == nullptr);
    CHECK(!watched.is_there());
    {
        const Shared<Value> owner = make_shared_value<Value>(ended, 3);
        watched = owner;
        const Watched<Value> copy = watched;
        CHECK(copy.lock()->number == 3);
        CHECK(copy.is_there());
    }
    CHECK(ended == 1);
    CHECK(!watched.is_there());
    CHECK(watched.lock() == nullptr);
    watched = Watched<Value>();
    CHECK(watched.lock() == nullptr);
}

TEST_CASE("shared values: one whose making throws leaves nothing behind") {
    struct Throws {
        Throws() { throw 5; }
    };
    CHECK_THROWS_AS((void)make_shared_value<Throws>(), int);
}

TEST_CASE("shared values: threads own and watch one at the same time, and it ends once") {
    for (int round = 0; round < 200; ++round) {
        int ended = 0;
        std::atomic<int> seen{0};
        {
            Shared<Value> owner = make_shared_value<Value>(ended, 1);
            const Watched<Value> watched = owner;
            std::vector<std::thread> threads;
            for (int i = 0; i < 2; ++i)
                threads.emplace_back([owner, &seen] { seen += owner->number; });
            threads.emplace_back([watched, &seen] {
                if (const Shared<Value> found = watched.lock(); found != nullptr)
                    seen += found->number;
            });
            owner = nullptr;
            for (std::thread& thread : threads)
                thread.join();
        }
        CHECK(ended == 1);
        CHECK(seen >= 2);
    }
}

} // namespace backend_shared

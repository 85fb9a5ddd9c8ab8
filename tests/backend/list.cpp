// The array that the library's own parts use: its values begin and end once, whatever is done with it.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <sluice/backend/detail/list.hpp>

#include "support/doctest.hpp"

namespace backend_list {

using sluice::detail::List;

namespace {

// Counts those that live, and throws when the one is made or copied that is asked for.
struct Counted {
    static inline int alive = 0;
    static inline int until_throw = -1;

    Counted() : Counted(0) {}
    explicit Counted(int of) : value(of) {
        throw_if_asked();
        ++alive;
    }
    Counted(const Counted& other) : Counted(other.value) {}
    Counted(Counted&& other) noexcept : value(other.value) { ++alive; }
    Counted& operator=(const Counted&) = default;
    ~Counted() { --alive; }

    int value;

private:
    static void throw_if_asked() {
        if (until_throw-- == 0)
            throw std::runtime_error("asked for");
    }
};

List<int> numbers(int count) {
    List<int> list;
    for (int i = 0; i < count; ++i)
        list.push_back(i);
    return list;
}

} // namespace

TEST_CASE("a list grows, and gives what was put into it") {
    List<int> list = numbers(100);
    REQUIRE(list.size() == 100);
    for (int i = 0; i < 100; ++i)
        CHECK(list[static_cast<std::size_t>(i)] == i);
    CHECK(list.front() == 0);
    CHECK(list.back() == 99);
    list.pop_back();
    CHECK(list.back() == 98);
    list.push_back(list.front()); // of itself, also where it grows
    CHECK(list.back() == 0);
    list.resize(2);
    list.resize(4);
    CHECK(list == [] {
        List<int> expected = numbers(2);
        expected.push_back(0);
        expected.push_back(0);
        return expected;
    }());
    list.assign(3, list[1]);
    CHECK(list == List<int>(3, 1));
    CHECK_FALSE(list == List<int>(2, 1));
    list.clear();
    CHECK(list.empty());
}

TEST_CASE("a list takes a value in, and gives one up, anywhere") {
    for (std::size_t at = 0; at <= 5; ++at) {
        List<int> list = numbers(5);
        list.insert(list.begin() + at, 77);
        REQUIRE(list.size() == 6);
        CHECK(list[at] == 77);
        list.erase(list.begin() + at);
        CHECK(list == numbers(5));
    }
}

TEST_CASE("a list that is copied over keeps its memory, one that is moved gives it away") {
    List<int> list = numbers(40);
    const int* const memory = list.data();
    const List<int> other = numbers(30);
    list = other;
    CHECK(list == other);
    CHECK(list.data() == memory);
    const List<int>& same = list;
    list = same;
    CHECK(list == other);
    List<int> taken(std::move(list));
    CHECK(taken.data() == memory);
    CHECK(list.empty());
    list = std::move(taken);
    CHECK(list.data() == memory);
}

TEST_CASE("values of a list end in their order, and as soon as others take their place") {
    struct Noted {
        explicit Noted(std::string& notes, char name) : to(&notes), as(name) {}
        Noted(Noted&& other) noexcept : to(std::exchange(other.to, nullptr)), as(other.as) {}
        ~Noted() {
            if (to != nullptr)
                *to += as;
        }
        std::string* to;
        char as;
    };
    std::string notes;
    List<Noted> list;
    list.emplace_back(notes, 'a');
    list.emplace_back(notes, 'b');
    List<Noted> other;
    other.emplace_back(notes, 'c');
    CHECK(notes.empty());
    list = std::move(other);
    CHECK(notes == "ab");
    CHECK(other.empty());
    list.clear();
    CHECK(notes == "abc");
}

TEST_CASE("values of a list that throw leave none behind") {
    for (int failing = 0; failing < 30; ++failing) {
        Counted::until_throw = -1;
        {
            List<Counted> full(5, Counted(1));
            Counted::until_throw = failing;
            try {
                List<Counted> list(3);
                list.emplace_back(4);
                const List<Counted> copy(full);
                full = list;
                full.resize(9);
                full.assign(12, full[0]);
            } catch (const std::runtime_error&) {
            }
            Counted::until_throw = -1;
        }
        CHECK(Counted::alive == 0);
    }
}

TEST_CASE("a list holds what cannot be copied, and what is aligned widely") {
    List<std::unique_ptr<int>> owners;
    for (int i = 0; i < 20; ++i)
        owners.push_back(std::make_unique<int>(i));
    CHECK(*owners[19] == 19);
    struct alignas(128) Wide {
        float values[32] = {};
    };
    List<Wide> wide(3);
    wide.emplace_back();
    for (const Wide& one : wide)
        CHECK(reinterpret_cast<std::uintptr_t>(&one) % 128 == 0);
}

} // namespace backend_list

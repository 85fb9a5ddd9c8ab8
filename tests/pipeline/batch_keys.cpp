// What tells batches apart under Schedule::graphed: members by value, buffers and spans by address and size.
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sluice/sluice.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace pipeline_batch_keys {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using detail::KeyBytes;

// The key; nothing where the value cannot be told from others.
template <class T>
std::optional<KeyBytes> key_of(const T& value) {
    KeyBytes key;
    if (!detail::append_key(key, value))
        return std::nullopt;
    return key;
}
template <class T>
bool told_apart(const T& a, const T& b) {
    const auto first = key_of(a), second = key_of(b);
    return first && second && *first != *second;
}
template <class T>
bool equal(const T& a, const T& b) {
    const auto first = key_of(a), second = key_of(b);
    return first && second && *first == *second;
}
template <class T>
bool never_taken_for_each_other(const T& a, const T& b) {
    const auto first = key_of(a), second = key_of(b);
    return !first || !second || *first != *second;
}

enum class Mode { train, evaluate };

struct Padded {
    const float* data;
    int count;
};
struct Inner {
    char letter;
    double number;
};
struct Nested {
    Inner inner;
    int counts[3];
    Inner pairs[2];
    std::array<short, 2> shorts;
    Mode mode;
    bool last;
};
struct Nothing {};
struct WithNothing {
    Nothing nothing;
    int number;
};
struct Owning {
    std::vector<int> numbers;
    std::optional<float> rate;
    std::string name;
    std::pair<int, char> pair;
    std::tuple<int, Padded> tuple;
};
struct Bits {
    unsigned small : 3;
    unsigned large : 20;
};
struct Sixteen {
    char a, b, c, d, e, f, g, h;
    int i, j, k, l, m, n, o, p;
};
struct Seventeen : Nothing {
    int a[17];
};
struct Many {
    int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r;
};
struct Base {
    int number;
};
struct Derived : Base {
    int other;
};
struct DerivedFromNothing : Nothing {
    int number;
};
struct DerivedOwner : Base {
    std::vector<int> numbers;
};
class Private {
public:
    explicit Private(int number) : number_(number) {}
    int number() const { return number_; }

private:
    int number_;
};
class PrivateOwner {
public:
    explicit PrivateOwner(std::vector<int> numbers) : numbers_(std::move(numbers)) {}
    const std::vector<int>& numbers() const { return numbers_; }

private:
    std::vector<int> numbers_;
};
class Keyed {
public:
    explicit Keyed(std::vector<int> numbers) : numbers_(std::move(numbers)) {}
    friend auto graph_key(const Keyed& keyed) { return keyed.numbers_.size(); }

private:
    std::vector<int> numbers_;
};
struct NamedKey {
    std::string name;
    std::unique_ptr<int> other;
    friend std::string graph_key(const NamedKey& batch) { return batch.name; }
};
struct ConstantReference {
    const std::vector<int>& numbers;
    int count;
};
struct Reference {
    std::vector<int>& numbers;
    int count;
};
struct ReferenceAlone {
    int& number;
};
struct Several {
    std::vector<int> parts[3];
};
struct Buffers {
    PinnedBuffer<float, B> images;
    DeviceBuffer<int, B> labels;
    PinnedSpan<const float, B> view;
    std::span<const int> host;
};

} // namespace

TEST_CASE("the same bytes at another place are another batch, whatever came before") {
    struct Ops {
        std::size_t raw_bytes = sizeof(int);
        bool known = true;
        bool append_key(KeyBytes& key, const void* value) const {
            key.append(value, sizeof(int));
            return known;
        }
    };
    const Ops ops, others;
    const Ops unknown{.known = false};
    const int value = 5, same = 5, other = 6;
    const int places[2] = {};
    detail::BatchNumbers numbers;
    const std::uint64_t first = numbers.number_of(ops, &value, &places[0]);
    CHECK(first != 0);
    CHECK(numbers.number_of(ops, &same, &places[0]) == first);
    CHECK(numbers.number_of(ops, &same, &places[0]) == first);
    const std::uint64_t second = numbers.number_of(ops, &value, &places[1]);
    CHECK(second != first);
    CHECK(numbers.number_of(ops, &value, &places[1]) == second);
    CHECK(numbers.number_of(ops, &value, &places[0]) == first);
    CHECK(numbers.number_of(ops, &other, &places[0]) != first);
    CHECK(numbers.number_of(ops, &value, &places[0]) == first);
    CHECK(numbers.number_of(unknown, &value, &places[0]) == 0);
    CHECK(numbers.number_of(others, &value, &places[0]) == first); // as the keys are the same
}

TEST_CASE("batch keys: numbers, enumerations and pointers by value") {
    CHECK(told_apart(1, 2));
    CHECK(equal(1, 1));
    CHECK(told_apart(Mode::train, Mode::evaluate));
    CHECK(told_apart(1.0f, 1.5f));
    const int numbers[2] = {};
    CHECK(told_apart(&numbers[0], &numbers[1]));
}

TEST_CASE("batch keys: padding does not count") {
    alignas(Padded) unsigned char first[sizeof(Padded)], second[sizeof(Padded)];
    std::memset(first, 0x11, sizeof(first));
    std::memset(second, 0xEE, sizeof(second));
    const float number = 0;
    auto* const a = ::new (first) Padded;
    auto* const b = ::new (second) Padded;
    a->data = b->data = &number;
    a->count = b->count = 3;
    CHECK(equal(*a, *b));
    b->count = 4;
    CHECK(told_apart(*a, *b));
}

TEST_CASE("batch keys: every member of a nested aggregate counts") {
    const Nested base{{'a', 1.0}, {1, 2, 3}, {{'b', 2.0}, {'c', 3.0}}, {4, 5}, Mode::train, false};
    CHECK(equal(base, Nested(base)));
    const auto differs = [&](auto change) {
        Nested other = base;
        change(other);
        return told_apart(base, other);
    };
    CHECK(differs([](Nested& n) { n.inner.letter = 'z'; }));
    CHECK(differs([](Nested& n) { n.inner.number = 9; }));
    CHECK(differs([](Nested& n) { n.counts[2] = 9; }));
    CHECK(differs([](Nested& n) { n.pairs[1].number = 9; }));
    CHECK(differs([](Nested& n) { n.shorts[1] = 9; }));
    CHECK(differs([](Nested& n) { n.mode = Mode::evaluate; }));
    CHECK(differs([](Nested& n) { n.last = true; }));
}

TEST_CASE("batch keys: empty members, bit fields, and as many as sixteen members") {
    CHECK(equal(Nothing{}, Nothing{}));
    CHECK(told_apart(WithNothing{{}, 1}, WithNothing{{}, 2}));
    CHECK(equal(Bits{1, 2}, Bits{1, 2}));
    CHECK(told_apart(Bits{1, 2}, Bits{1, 3}));
    Sixteen all{};
    Sixteen other{};
    other.p = 1;
    CHECK(equal(all, Sixteen{}));
    CHECK(told_apart(all, other));
    Many many{};
    Many more{};
    more.r = 1;
    CHECK(never_taken_for_each_other(many, more));
}

TEST_CASE("batch keys: base classes count") {
    CHECK(never_taken_for_each_other(Derived{{1}, 2}, Derived{{3}, 2}));
    CHECK(never_taken_for_each_other(Derived{{1}, 2}, Derived{{1}, 3}));
    CHECK(never_taken_for_each_other(DerivedFromNothing{{}, 1}, DerivedFromNothing{{}, 2}));
    CHECK(never_taken_for_each_other(DerivedOwner{{1}, {1}}, DerivedOwner{{1}, {2}}));
    CHECK(never_taken_for_each_other(Seventeen{{}, {1}}, Seventeen{{}, {2}}));
    using Left = Tagged<struct LeftTag, Padded>;
    CHECK(never_taken_for_each_other(Left{{nullptr, 1}}, Left{{nullptr, 2}}));
}

TEST_CASE("batch keys: references count as what they refer to, or are not told apart") {
    std::vector<int> numbers{1}, others{2};
    CHECK(told_apart(ConstantReference{numbers, 1}, ConstantReference{others, 1}));
    CHECK(told_apart(ConstantReference{numbers, 1}, ConstantReference{numbers, 2}));
    CHECK(never_taken_for_each_other(Reference{numbers, 1}, Reference{others, 1}));
    CHECK(never_taken_for_each_other(Reference{numbers, 1}, Reference{numbers, 2}));
    const auto before = key_of(Reference{numbers, 1});
    numbers.resize(1000);
    const auto after = key_of(Reference{numbers, 1});
    CHECK((!before || !after || *before != *after));
    int one = 1, two = 2;
    CHECK(never_taken_for_each_other(ReferenceAlone{one}, ReferenceAlone{two}));
}

TEST_CASE("batch keys: what owns host memory counts with its elements") {
    const Padded padded{nullptr, 3};
    const Owning base{{1, 2}, 0.5f, "name", {1, 'a'}, {1, padded}};
    CHECK(equal(base, base));
    const auto differs = [&](auto change) {
        // In place, so that no address differs.
        Owning changed = base;
        const auto before = key_of(changed);
        change(changed);
        return before && key_of(changed) && *before != *key_of(changed);
    };
    CHECK(differs([](Owning& o) { o.numbers[1] = 9; }));
    CHECK(differs([](Owning& o) { o.numbers.push_back(9); }));
    CHECK(differs([](Owning& o) { o.rate = 0.25f; }));
    CHECK(differs([](Owning& o) { o.rate.reset(); }));
    CHECK(differs([](Owning& o) { o.name[0] = 'N'; }));
    CHECK(differs([](Owning& o) { o.pair.second = 'b'; }));
    CHECK(differs([](Owning& o) { std::get<1>(o.tuple).count = 4; }));
    CHECK_FALSE(key_of(std::vector<int>(5000))); // too many to compare each time
    // One of several that is not told makes the whole of them untold, whichever it is.
    CHECK(key_of(Several{{{1}, {2}, {3}}}));
    for (std::size_t large = 0; large < 3; ++large) {
        Several several{{{1}, {2}, {3}}};
        several.parts[large].resize(5000);
        CHECK_FALSE(key_of(several));
        CHECK_FALSE(key_of(std::vector<std::vector<int>>(several.parts, several.parts + 3)));
        CHECK_FALSE(key_of(std::tuple{several.parts[0], several.parts[1], several.parts[2]}));
    }
}

TEST_CASE("batch keys: buffers and spans by address and size") {
    Buffers batch{PinnedBuffer<float, B>(4), DeviceBuffer<int, B>(4), {}, {}};
    const auto before = key_of(batch);
    batch.images[0] = 9; // read when the work runs
    CHECK(key_of(batch) == before);
    batch.view = batch.images.span().first(2);
    CHECK(key_of(batch) != before);
    const auto with_view = key_of(batch);
    batch.labels = DeviceBuffer<int, B>(8); // another size, even where the address is the same
    CHECK(key_of(batch) != with_view);
    REQUIRE(before);
}

TEST_CASE(
    "batch keys: classes that hide their members give graph_key, or their bytes, or are not told apart") {
    CHECK(told_apart(Private(1), Private(2)));
    CHECK(equal(Private(1), Private(1)));
    CHECK_FALSE(key_of(PrivateOwner({1, 2})));
    CHECK(equal(Keyed({1, 2}), Keyed({3, 4})));
    CHECK(told_apart(Keyed({1, 2}), Keyed({3, 4, 5})));
    const std::string name = "a name that is too long to be kept in place by any library";
    CHECK(equal(NamedKey{name, nullptr}, NamedKey{name, nullptr}));
    CHECK(told_apart(NamedKey{name, nullptr}, NamedKey{name + "!", nullptr}));
    CHECK_FALSE(key_of(std::make_unique<int>(1)));
}

TEST_CASE("batches with a std::array are taken, and may change under way where its elements may") {
    struct Shaped {
        std::array<int, 4> shape{};
        PinnedBuffer<int, B> numbers{8};
    };
    struct Pair {
        std::array<PinnedBuffer<int, B>, 2> halves{PinnedBuffer<int, B>(8), PinnedBuffer<int, B>(8)};
    };
    struct OnDevice {
        std::array<DeviceBuffer<int, B>, 2> halves{DeviceBuffer<int, B>(8), DeviceBuffer<int, B>(8)};
        std::array<std::array<float, 2>, 3> numbers{};
    };
    CHECK(detail::names_host_memory<Shaped>());
    CHECK(detail::names_host_memory<Pair>());
    CHECK_FALSE(detail::names_host_memory<OnDevice>());

    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        std::vector<int> seen;
        Readback<int, B> results{1,
                                 [&](std::size_t, std::span<const int> value) { seen.push_back(value[0]); }};
        Stage load{"load", [](BasicStreamRef<B> on, const Pair& in, DeviceBuffer<int, B>& out) {
                       copy(on, out, in.halves[1]);
                   }};
        Stage use{"use", [&](BasicStreamRef<B> on, const DeviceBuffer<int, B>& in) {
                      results.push(on, in.first(1));
                  }};
        TwoStreamPipeline pipeline{
            load, use, [](int) { return DeviceBuffer<int, B>(8); }, {.schedule = schedule}};
        Pair batch;
        for (int i = 0; i < 10; ++i) {
            batch.halves[1][0] = i;
            pipeline.submit(batch).wait(); // waits until it has been read
        }
        pipeline.finish();
        results.finish();
        CHECK(seen == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    }
}

TEST_CASE("batches with references are replayed for what these refer to, not for where it is") {
    struct Referring {
        const int& number;
        const DeviceBuffer<int, B>& buffer;
    };
    CHECK_FALSE(detail::told_by_bytes<Referring>());
    int number = 0;
    const DeviceBuffer<int, B> buffer(8);
    std::vector<int> seen;
    Readback<int, B> results{1, [&](std::size_t, std::span<const int> value) { seen.push_back(value[0]); }};
    Stage show{"show", [&](BasicStreamRef<B> on, const Referring& in, DeviceBuffer<int, B>& out) {
                   fill(on, out, in.number);
               }};
    Stage use{"use",
              [&](BasicStreamRef<B> on, const DeviceBuffer<int, B>& in) { results.push(on, in.first(1)); }};
    TwoStreamPipeline pipeline{
        show, use, [](int) { return DeviceBuffer<int, B>(8); }, {.schedule = Schedule::graphed}};
    const Referring batch{number, buffer};
    for (int i = 0; i < 20; ++i) {
        number = i / 5;
        pipeline.submit(batch);
    }
    pipeline.finish();
    results.finish();
    for (int i = 0; i < 20; ++i)
        CHECK(seen[static_cast<std::size_t>(i)] == i / 5);
}

} // namespace pipeline_batch_keys

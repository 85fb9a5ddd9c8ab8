// Keys of batches and their numbers, against lists of all that there were, and batches that wait for stages.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <sluice/pipeline/detail/core/key_numbers.hpp>
#include <sluice/pipeline/detail/core/slot_table.hpp>
#include <sluice/sluice.hpp>

#include "support/doctest.hpp"

namespace pipeline_core_keys {

using namespace sluice;

TEST_CASE("core: keys have the numbers of a list of the last 512") {
    detail::KeyNumbers numbers;
    std::deque<std::pair<int, std::uint64_t>> known;
    std::mt19937 random(7);
    std::uint64_t last = 0;
    const auto ask = [&](int which) {
        detail::KeyBytes key;
        detail::append_scalar(key, which);
        const std::uint64_t number = numbers.number_of(key);
        for (const auto& [of, expected] : known) {
            if (of == which) {
                CHECK(number == expected);
                return;
            }
        }
        CHECK(number > last); // a new one
        last = number;
        known.push_back({which, number});
        if (known.size() > 512)
            known.pop_front();
    };
    for (int key = 0; key < 512; ++key)
        ask(key);
    for (int key = 0; key < 512; ++key)
        ask(key); // all are known yet
    ask(512);
    ask(1);
    ask(0); // was forgotten, and comes instead of the next oldest
    ask(2);
    ask(1);
    for (int time = 0; time < 3000; ++time)
        ask(static_cast<int>(random() % 700));
}

namespace {

struct CountedOps {
    std::size_t raw_bytes = sizeof(int);
    int tag = 0;
    bool told = true;
    mutable int keys = 0;

    bool append_key(detail::KeyBytes& key, const void* value) const {
        ++keys;
        detail::append_scalar(key, tag);
        detail::append_scalar(key, *static_cast<const int*>(value));
        return told;
    }
};

} // namespace

TEST_CASE("core: batches that come again in their order are known without a key") {
    for (const std::size_t bytes : {std::size_t{0}, sizeof(int)}) {
        for (const int count : {1, 2, 255, 256, 257, 511, 512}) {
            CAPTURE(bytes);
            CAPTURE(count);
            detail::BatchNumbers numbers;
            const CountedOps ops{.raw_bytes = bytes};
            std::vector<std::uint64_t> first;
            for (int round = 0; round < 3; ++round) {
                for (int value = 0; value < count; ++value) {
                    const std::uint64_t number = numbers.number_of(ops, &value, nullptr);
                    CHECK(number != 0);
                    if (round == 0)
                        first.push_back(number);
                    else
                        CHECK(number == first[static_cast<std::size_t>(value)]);
                }
            }
            CHECK(std::set(first.begin(), first.end()).size() == first.size());
            // In the second round, what follows the last one is asked for once more, unless that is itself.
            const bool noted = bytes > 0 && count <= 256;
            CHECK(ops.keys == (!noted ? 3 * count : count == 1 ? 1 : count + 1));
        }
    }
}

TEST_CASE("core: a batch is another one where its type, its place, its bytes or an allocation is") {
    detail::BatchNumbers numbers;
    const CountedOps ops, others{.tag = 1};
    const int one = 1, two = 2;
    const std::uint64_t number = numbers.number_of(ops, &one, nullptr);
    const auto again = [&](int keys) { // once it has come twice, it comes without a key
        CHECK(numbers.number_of(ops, &one, nullptr) == number);
        CHECK(numbers.number_of(ops, &one, nullptr) == number);
        ops.keys = 0;
        CHECK(numbers.number_of(ops, &one, nullptr) == number);
        CHECK(ops.keys == keys);
    };
    again(0);
    CHECK(numbers.number_of(others, &one, nullptr) != number);
    again(0);
    CHECK(numbers.number_of(ops, &one, &one) != number);
    again(0);
    CHECK(numbers.number_of(ops, &two, nullptr) != number);
    again(0);
    {
        const PinnedBuffer<int, Host> allocated(1);
        ops.keys = 0;
        CHECK(numbers.number_of(ops, &one, nullptr) == number);
        CHECK(ops.keys == 1); // what it points to may be another allocation
        again(0);
    }
    const CountedOps untold{.told = false};
    CHECK(numbers.number_of(untold, &one, nullptr) == 0);
    CHECK(numbers.number_of(untold, &one, nullptr) == 0);
    CHECK(untold.keys == 2);
    again(0);
}

namespace {

struct alignas(128) Wide {
    std::uint64_t value;
};
const detail::BatchOps wide_ops{.append_key =
                                    [](detail::KeyBytes& key, const void* batch) {
                                        const std::uint64_t value = static_cast<const Wide*>(batch)->value;
                                        detail::append_scalar(key, value);
                                        return value != 99;
                                    },
                                .raw_bytes = sizeof(Wide),
                                .copied_bytes = sizeof(Wide),
                                .alignment = alignof(Wide),
                                .show_memory = nullptr,
                                .made_at = nullptr};

} // namespace

TEST_CASE("core: of pending batches as many are kept as were asked for, each with a copy of its own") {
    for (std::size_t most = 1; most <= 9; ++most) {
        CAPTURE(most);
        detail::PendingBatches<Host> pending(most, true), unread(most, false);
        for (std::size_t number = 0; number < 40; ++number) {
            {
                Wide batches[2]{{100 + number % 5}, {100 + number % 5}}; // at one place or another
                pending.take(number, {.value = &batches[number % 2], .ops = &wide_ops}, {});
                unread.take(number, {.value = &batches[number % 2], .ops = &wide_ops}, {});
                batches[0].value = batches[1].value = 0;
            }
            const std::size_t first = number + 1 < most ? 0 : number + 1 - most;
            detail::StepKey key;
            CHECK(pending.append_numbers(key, first, number + 1));
            for (std::size_t of = first; of <= number; ++of) {
                const void* const value = pending.given(of).value;
                CHECK(reinterpret_cast<std::uintptr_t>(value) % alignof(Wide) == 0);
                CHECK(static_cast<const Wide*>(value)->value == 100 + of % 5);
                CHECK(static_cast<const Wide*>(unread.given(of).value)->value == 100 + of % 5);
                for (std::size_t other = first; other <= number; ++other) {
                    detail::StepKey one, two;
                    CHECK(pending.append_numbers(one, of, of + 1));
                    CHECK(pending.append_numbers(two, other, other + 1));
                    CHECK((one == two) == (of % 5 == other % 5));
                }
            }
            detail::StepKey none, empty;
            CHECK(unread.append_numbers(none, first, number + 1));
            CHECK(none == empty);
        }
    }
}

TEST_CASE("core: a pending batch that is not copied is told by its place, and one that nothing tells has no "
          "number") {
    detail::BatchOps ops = wide_ops;
    ops.copied_bytes = 0;
    detail::PendingBatches<Host> pending(4, true);
    const Wide batches[3]{{5}, {5}, {99}};
    const auto key_of = [&](std::size_t number, const Wide& batch) {
        pending.take(number, {.value = &batch, .ops = &ops}, {});
        CHECK(pending.given(number).value == &batch);
        detail::StepKey key;
        CHECK(pending.append_numbers(key, number, number + 1) == (batch.value != 99));
        return key;
    };
    const detail::StepKey first = key_of(0, batches[0]);
    CHECK_FALSE(first == key_of(1, batches[1]));
    CHECK(first == key_of(2, batches[0]));
    (void)key_of(3, batches[2]);
    detail::StepKey all;
    CHECK_FALSE(pending.append_numbers(all, 2, 4));
}

TEST_CASE(
    "core: a kind of step has each successive batch's key once, and none that was not asked for in time") {
    detail::PendingBatches<Host> pending(4, true);
    const auto take = [&](std::size_t number, std::uint64_t value) {
        const Wide batch{value};
        pending.take(number, {.value = &batch, .ops = &wide_ops}, {});
    };
    const auto kind = [](std::vector<std::uint64_t> values) {
        detail::KeyBytes bytes;
        for (const std::uint64_t value : values)
            detail::append_scalar(bytes, value);
        return bytes;
    };
    take(0, 5);
    take(1, 5);
    take(2, 6);
    take(3, 5);
    detail::KeyBytes of_all, late, again, without;
    CHECK_FALSE(pending.append_shapes(late, 0, 1, 4)); // batch 0 may be gone
    CHECK(late.size() == 0);
    CHECK(pending.append_shapes(of_all, 0, 0, 4));
    CHECK(of_all == kind({5, 6, 5}));
    CHECK(pending.append_shapes(again, 0, 4, 4)); // all are known
    CHECK(again == of_all);
    detail::KeyBytes some;
    CHECK(pending.append_shapes(some, 1, 1, 3));
    CHECK(some == kind({5, 6}));
    take(4, 7); // in the first one's place
    detail::KeyBytes next;
    CHECK_FALSE(pending.append_shapes(next, 1, 5, 5));
    next.clear();
    CHECK(pending.append_shapes(next, 1, 4, 5));
    CHECK(next == kind({5, 6, 5, 7}));
    take(5, 99);
    detail::KeyBytes untold;
    CHECK_FALSE(pending.append_shapes(untold, 5, 5, 6));
    detail::PendingBatches<Host> unread(4, false);
    CHECK_FALSE(unread.append_shapes(without, 0, 0, 1));
}

TEST_CASE("core: slots have one number for each state, which tells allocations and not addresses") {
    struct Pair {
        std::uint64_t value;
        const int* at;
    };
    for (const bool by_bytes : {true, false}) {
        CAPTURE(by_bytes);
        static int keys = 0;
        keys = 0;
        const detail::SlotOps ops{.bytes = sizeof(Pair),
                                  .empty = false,
                                  .told_by_bytes = by_bytes,
                                  .has_host_part = false,
                                  .append_key =
                                      [](detail::KeyBytes&, const void*) {
                                          ++keys;
                                          return true;
                                      },
                                  .make = [](void*, int) -> void* { return new Pair{}; },
                                  .destroy = [](void* slot) noexcept { delete static_cast<Pair*>(slot); },
                                  .show_memory = nullptr};
        detail::SlotTable table(4, 2);
        detail::StagePlan stages[4]; // The second is a CPU stage's, and the third one's are the first one's.
        for (int maker = 0; maker < 4; ++maker) {
            stages[maker].maker = maker;
            for (std::size_t slot = 0; slot < 2; ++slot)
                table.make(static_cast<std::size_t>(maker), slot, ops, nullptr, "some");
        }
        stages[1].capturable = false;
        stages[2].hands_on = true;
        stages[3].maker = -1;
        detail::PlanData plan;
        plan.stages = stages;
        detail::SlotsNumber number(plan, table);
        const auto pair = [&](std::size_t maker, std::size_t slot) -> Pair& {
            return *static_cast<Pair*>(table.at(maker, slot));
        };
        const std::uint64_t first = number.get();
        CHECK(first != 0);
        CHECK(number.get() == first);
        CHECK(keys == (by_bytes ? 0 : 4)); // of two slots, twice
        for (std::size_t maker = 0; maker < 4; ++maker) {
            for (std::size_t slot = 0; slot < 2; ++slot) {
                pair(maker, slot).value = 7;
                CHECK((number.get() == first) == (maker != 0));
                pair(maker, slot).value = 0;
                CHECK(number.get() == first);
            }
        }
        // One address, of one allocation after the other.
        auto& allocations = detail::Allocations::instance();
        int memory[4]{};
        allocations.add(memory, sizeof(memory));
        pair(0, 1).at = memory;
        const std::uint64_t pointing = number.get();
        CHECK(pointing != first);
        {
            const PinnedBuffer<int, Host> other(1);
            CHECK(number.get() == pointing);
        }
        CHECK(number.get() == pointing);
        allocations.remove(memory);
        allocations.add(memory, sizeof(memory));
        const std::uint64_t again = number.get();
        CHECK(again != pointing);
        CHECK(number.get() == again);
        allocations.remove(memory);
        CHECK(number.get() != again);
    }
}

} // namespace pipeline_core_keys

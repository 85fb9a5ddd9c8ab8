// Bodies of stress_state.hpp.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include <sluice/backend/detail/checked/stress_state.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/stress.hpp>

namespace sluice::detail::checked {

/// What the mutex guards.
struct StressState::Books {
    struct Operations {
        Key stream;
        std::uint64_t number;
    };
    std::mutex mutex;
    Stress settings;
    List<Operations> streams; // In the order in which they were first seen.
    std::string fault;        // Of the environment, until it was thrown.
};

SLUICE_BODY Stress stress_of(const char* text) {
    Stress settings;
    const char* rest = text;
    const auto next = [&](unsigned long long least, unsigned long long most) {
        char* end = nullptr;
        errno = 0;
        const unsigned long long given = std::strtoull(rest, &end, 10);
        if (*rest < '0' || *rest > '9' || errno != 0 || given < least || given > most ||
            (*end != ',' && *end != '\0')) {
            throw Error("SLUICE_STRESS is \"" + std::string(text) +
                        "\"; expected SEED, SEED,ONE_IN or SEED,ONE_IN,DELAY_US in whole numbers, ONE_IN "
                        "from 1 and DELAY_US from 0 to 1000000");
        }
        rest = *end == ',' ? end + 1 : nullptr;
        return given;
    };
    settings.seed = next(0, ~0ULL);
    if (rest != nullptr)
        settings.one_in = static_cast<int>(next(1, 1000000));
    if (rest != nullptr)
        settings.delay_us = static_cast<int>(next(0, 1000000));
    if (rest != nullptr)
        (void)next(1, 0); // there is no fourth one
    return settings;
}

SLUICE_BODY StressState& StressState::instance() {
    static StressState& state = *new StressState;
    return state;
}

SLUICE_BODY StressState::StressState() : books_(*new Books) {
#if SLUICE_CHECKED // Only there is something that it could reach.
    if (const char* const text = std::getenv("SLUICE_STRESS"); text != nullptr && *text != '\0') {
        try {
            books_.settings = stress_of(text);
            poisons = permutes = true;
        } catch (const Error& error) {
            books_.fault =
                error
                    .what(); // for the first operation: a program's first look may be where nothing may throw
        }
        on = true;
    }
#endif
}

SLUICE_BODY std::uint64_t StressState::next_of(Key stream) {
    const std::lock_guard lock(books_.mutex);
    if (!books_.fault.empty()) [[unlikely]] {
        on = false;
        throw Error(std::exchange(books_.fault, {}));
    }
    std::size_t number = 0;
    while (number < books_.streams.size() && books_.streams[number].stream != stream)
        ++number;
    if (number == books_.streams.size())
        books_.streams.push_back({stream, 0});
    return (static_cast<std::uint64_t>(number) << 40) + books_.streams[number].number++;
}

SLUICE_BODY Stress StressState::settings() {
    const std::lock_guard lock(books_.mutex);
    return books_.settings;
}

SLUICE_BODY bool StressState::change(bool on_now, Stress& settings) {
    const std::lock_guard lock(books_.mutex);
    std::swap(settings, books_.settings);
    books_.streams.clear();
    poisons.store(on_now && books_.settings.poison, std::memory_order_relaxed);
    permutes.store(on_now && books_.settings.permute, std::memory_order_relaxed);
    return on.exchange(on_now, std::memory_order_acq_rel);
}

SLUICE_BODY bool stress_poisons() noexcept {
    return StressState::instance().poisons.load(std::memory_order_relaxed);
}

SLUICE_BODY void count_poisoning() noexcept {
    StressState::instance().poisonings.fetch_add(1, std::memory_order_relaxed);
}

} // namespace sluice::detail::checked

namespace sluice {

SLUICE_BODY StressScope::StressScope(const Stress& stress) : outer_(stress) {
    if (stress.delay_us < 0)
        throw Error("Stress::delay_us must be 0 or more, got " + std::to_string(stress.delay_us));
    if (stress.one_in < 1)
        throw Error("Stress::one_in must be 1 or more, got " + std::to_string(stress.one_in));
    was_on_ = detail::checked::StressState::instance().change(true, outer_);
}

SLUICE_BODY StressScope::~StressScope() { detail::checked::StressState::instance().change(was_on_, outer_); }

SLUICE_BODY StressCounts StressScope::counts() noexcept {
    const detail::checked::StressState& state = detail::checked::StressState::instance();
    StressCounts counts;
    counts.operations = state.operations.load(std::memory_order_relaxed);
    counts.delays = state.delays.load(std::memory_order_relaxed);
    counts.poisonings = state.poisonings.load(std::memory_order_relaxed);
    counts.holds = state.holds.load(std::memory_order_relaxed);
    counts.orders = state.orders.load(std::memory_order_relaxed);
    return counts;
}

} // namespace sluice

// Bodies of stress_state.hpp.
#pragma once

#include <cstdlib>
#include <mutex>

#include <sluice/backend/detail/checked/stress_state.hpp>
#include <sluice/backend/detail/list.hpp>

namespace sluice::detail::checked {

/// What the mutex guards.
struct StressState::Books {
    struct Operations {
        Key stream;
        std::uint64_t number;
    };
    std::mutex mutex;
    StressSettings settings;
    List<Operations> streams; // In the order in which they were first seen.
};

SLUICE_BODY StressState& StressState::instance() {
    static StressState& state = *new StressState;
    return state;
}

SLUICE_BODY StressState::StressState() : books_(*new Books) {
#if SLUICE_CHECKED // Only there is something that it could reach.
    if (const char* const seed = std::getenv("SLUICE_STRESS"); seed != nullptr && *seed != '\0') {
        StressSettings& settings = books_.settings;
        char* rest = nullptr;
        settings.seed = std::strtoull(seed, &rest, 10);
        const auto next = [&rest](int& value, long least) {
            if (*rest != ',')
                return;
            const long given = std::strtol(rest + 1, &rest, 10);
            value = static_cast<int>(given < least ? least : given > 1000000 ? 1000000 : given);
        };
        next(settings.one_in, 1);
        next(settings.delay_us, 0);
        on = poisons = permutes = true;
    }
#endif
}

SLUICE_BODY std::uint64_t StressState::next_of(Key stream) {
    const std::lock_guard lock(books_.mutex);
    std::size_t number = 0;
    while (number < books_.streams.size() && books_.streams[number].stream != stream)
        ++number;
    if (number == books_.streams.size())
        books_.streams.push_back({stream, 0});
    return (static_cast<std::uint64_t>(number) << 40) + books_.streams[number].number++;
}

SLUICE_BODY StressSettings StressState::settings() {
    const std::lock_guard lock(books_.mutex);
    return books_.settings;
}

SLUICE_BODY OuterStress StressState::change(const OuterStress& to) {
    const std::lock_guard lock(books_.mutex);
    const OuterStress former{on.load(std::memory_order_relaxed), books_.settings};
    books_.settings = to.settings;
    books_.streams.clear();
    poisons.store(to.on && to.settings.poison, std::memory_order_relaxed);
    permutes.store(to.on && to.settings.permute, std::memory_order_relaxed);
    on.store(to.on, std::memory_order_release);
    return former;
}

} // namespace sluice::detail::checked

/// \file
/// A number for the state of a pipeline's slots on the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include <sluice/memory/detail/allocations.hpp>
#include <sluice/pipeline/detail/batch_key.hpp>
#include <sluice/pipeline/detail/key_numbers.hpp>

namespace sluice::detail {

/// A number for all that a callable may read in the slots on the host: their bytes, what their members hold elsewhere,
/// where they show it, and which allocations they point to. The same state has the same number. `SlotTuple` holds the
/// slots of each maker.
template <class Shape, class SlotTuple>
class SlotsNumber;

template <class Shape, class... SlotsOfMaker>
class SlotsNumber<Shape, std::tuple<SlotsOfMaker...>> {
    using SlotTuple = std::tuple<SlotsOfMaker...>;

public:
    std::uint64_t of(const SlotTuple& slots) {
        const std::uint64_t changes = Allocations::instance().changes();
        if (told_by_their_bytes && changes == changes_ && unchanged(slots)) [[likely]]
            return number_;
        bytes_.clear();
        for_each_slot(slots, [&](const auto& slot) {
            append_bytes(bytes_, static_cast<const void*>(&slot), sizeof(slot));
            if constexpr (!told_by_bytes<std::remove_cvref_t<decltype(slot)>>())
                (void)append_key(bytes_, slot);
        });
        if (changes == changes_ && bytes_ == known_bytes_)
            return number_;
        known_bytes_ = bytes_;
        for_each_slot(slots, [&](const auto& slot) {
            for (std::size_t at = 0; at + sizeof(void*) <= sizeof(slot); at += sizeof(void*)) {
                const void* word = nullptr;
                std::memcpy(&word, reinterpret_cast<const char*>(&slot) + at, sizeof(word));
                append_scalar(bytes_, Allocations::instance().number_of(word));
            }
        });
        changes_ = changes;
        number_ = numbers_.number_of(bytes_);
        return number_;
    }

private:
    // But those of CPU stages, which write them when they run, and which nobody may read when a stage is called.
    template <class Visit>
    static void for_each_slot(const SlotTuple& all, Visit&& visit) {
        const auto visit_stage = [&]<std::size_t Index>(std::integral_constant<std::size_t, Index>) {
            constexpr int maker = Shape::bindings.stages[Index].maker;
            if constexpr (maker >= 0 && Shape::capturable[Index]) {
                const auto& slots = std::get<static_cast<std::size_t>(maker)>(all);
                for (std::size_t slot = 0; slot < slots.size(); ++slot)
                    visit(slots[slot]);
            }
        };
        [&]<std::size_t... Is>(std::index_sequence<Is...>) {
            (visit_stage(std::integral_constant<std::size_t, Is>{}), ...);
        }
        (std::make_index_sequence<Shape::stages>{});
    }

    // Whether all slots are as they were when their number was made. Those that `told_by_bytes`.
    bool unchanged(const SlotTuple& slots) const noexcept {
        std::size_t at = 0;
        bool same = true;
        for_each_slot(slots, [&](const auto& slot) {
            if constexpr (!std::is_empty_v<std::remove_cvref_t<decltype(slot)>>)
                same = same && std::memcmp(&slot, known_bytes_.data() + at, sizeof(slot)) == 0;
            at += sizeof(slot);
        });
        return same;
    }
    static constexpr bool told_by_their_bytes =
        (told_by_bytes<typename SlotsOfMaker::value_type>() && ... && true);

    KeyBytes bytes_;
    KeyNumbers<> numbers_;
    // The state that has `number_`, as long as so many allocations have changed.
    KeyBytes known_bytes_;
    std::uint64_t changes_ = ~std::uint64_t{0};
    std::uint64_t number_ = 0;
};

} // namespace sluice::detail

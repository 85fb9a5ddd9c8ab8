// What a pipeline's core does with batches and slots, whatever their type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/pipeline/detail/boundary/batch_key.hpp>
#include <sluice/pipeline/detail/boundary/batch_traits.hpp>
#include <sluice/pipeline/detail/checked/visit_memory.hpp>

namespace sluice::detail {

/// What is done with a batch for itself.
struct BatchOps {
    bool (*append_key)(KeyBytes& key, const void* batch);
    /// Bytes that tell the batch from others of its type, as `told_by_bytes` says; 0: they do not.
    std::size_t raw_bytes;
    /// Bytes of a copy that serves instead of the batch, and how it is aligned; 0: none does.
    std::size_t copied_bytes;
    std::size_t alignment;
    ShowMemory show_memory;
    /// When the batch came into being, in nanoseconds of the steady clock. Null where it does not say.
    std::int64_t (*made_at)(const void* batch);

    template <class Batch, Backend B>
    static constexpr BatchOps of() noexcept {
        return {.append_key = &key_of<Batch>,
                .raw_bytes = told_by_bytes<Batch>() ? sizeof(Batch) : 0,
                .copied_bytes = std::is_trivially_copyable_v<Batch> ? sizeof(Batch) : 0,
                .alignment = alignof(Batch),
                .show_memory = show_memory_of<Batch, B>(),
                .made_at = made_at_of<Batch>()};
    }

private:
    template <class Batch>
    static constexpr auto made_at_of() noexcept -> std::int64_t (*)(const void*) {
        if constexpr (requires(const Batch& batch) { batch_time(batch); }) {
            return [](const void* batch) {
                try {
                    const std::chrono::steady_clock::time_point time =
                        batch_time(*static_cast<const Batch*>(batch));
                    return std::int64_t{std::chrono::nanoseconds(time.time_since_epoch()).count()};
                } catch (...) {
                    throw_batch_failure("batch_time");
                }
            };
        } else {
            return nullptr;
        }
    }
    template <class Batch>
    static bool key_of(KeyBytes& key, const void* batch) {
        append_scalar(key, static_cast<const void*>(&type_tag<Batch>));
        return detail::append_key(key, *static_cast<const Batch*>(batch));
    }
};
/// One for each type.
template <class Batch, Backend B>
inline constexpr BatchOps batch_ops = BatchOps::of<Batch, B>();

/// What is done with a stage's slots.
struct SlotOps {
    std::size_t bytes;
    bool empty;         ///< Its bytes tell nothing.
    bool told_by_bytes; ///< As `told_by_bytes` says.
    bool has_host_part; ///< As `has_host_part` says.
    bool (*append_key)(KeyBytes& key, const void* slot);
    /// Makes one with the slot maker at `maker`.
    void* (*make)(void* maker, int number);
    void (*destroy)(void* slot) noexcept;
    ShowMemory show_memory;

    template <class Maker, class Slot, Backend B>
    static constexpr SlotOps of() noexcept {
        return {.bytes = sizeof(Slot),
                .empty = std::is_empty_v<Slot>,
                .told_by_bytes = detail::told_by_bytes<Slot>(),
                .has_host_part = detail::has_host_part<Slot>(),
                .append_key = &key_of<Slot>,
                .make = &make_with<Maker, Slot>,
                .destroy = &destroy_as<Slot>,
                .show_memory = show_memory_of<Slot, B>()};
    }

private:
    template <class Slot>
    static bool key_of(KeyBytes& key, const void* slot) {
        return detail::append_key(key, *static_cast<const Slot*>(slot));
    }
    // A slot may be immovable.
    template <class Maker, class Slot>
    static void* make_with(void* maker, int number) {
        require_callable("the slot maker", *static_cast<Maker*>(maker));
        return new Slot((*static_cast<Maker*>(maker))(number));
    }
    template <class Slot>
    static void destroy_as(void* slot) noexcept {
        delete static_cast<Slot*>(slot);
    }
};
/// One for each type of slot and maker.
template <class Maker, class Slot, Backend B>
inline constexpr SlotOps slot_ops = SlotOps::of<Maker, Slot, B>();

} // namespace sluice::detail

// What a source tells the checker: the one interface between them.
#pragma once

#include <cstddef>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/checked/objects.hpp>

namespace sluice::detail {

/// Of a backend that is not checked: nothing is told.
template <Backend B, bool = IsChecked<B>::value>
struct SourceChecks {
    /// Within it, a thread is a worker's.
    struct WorkerScope {
        WorkerScope() noexcept {}
    };
    /// Makes a place by `make_place(make_slot)`.
    template <class Make, class MakePlace>
    static auto make(Make& make_slot, int, MakePlace&& make_place) {
        return make_place(make_slot);
    }
    /// Within it, a batch is filled.
    struct Filling {
        template <class Batch>
        Filling(const Batch&, bool, bool) noexcept {}
    };
    static void handed_over(const void*) noexcept {}
    static void taken_over(const void*) noexcept {}
    template <class Batch>
    static void gone(const Batch&, const void*) noexcept {}
};
template <Backend B>
struct SourceChecks<B, true> {
    using WorkerScope = checked::WorkerScope;
    template <class Make, class MakePlace>
    static auto make(Make& make_slot, int number, MakePlace&& make_place) {
        ListenedMaker<Make> listened(make_slot);
        auto place = make_place(listened);
        tell_of_object(place->batch(), listened.list(0), "a source", static_cast<std::size_t>(number));
        return place;
    }
    /// A slot's batch is filled meanwhile, and what it owns is poisoned first where stress wants it; nothing reads it. What it names
    /// is written where it changes.
    class Filling {
    public:
        template <class Batch>
        Filling(const Batch& batch, bool for_the_first_time, bool keeps_slots) {
            checked::host_works_on(&batch, true, checked::Op::fill_batch);
            if (!for_the_first_time && checked::stress_poisons() && !keeps_slots)
                poison_and_wait<B>(&batch);
            const auto add = [&](const checked::Range& range, bool constant) {
                if (!range.owned && !constant)
                    named_.add(range);
            };
            visit_memory(batch, add);
        }

    private:
        checked::NamedWrites named_;
    };
    /// What one thread knows of the slot, the next one does.
    /// @{
    static void handed_over(const void* slot) noexcept { checked::handed_over(slot); }
    static void taken_over(const void* slot) noexcept { checked::taken_over(slot); }
    /// @}
    template <class Batch>
    static void gone(const Batch& batch, const void* slot) noexcept {
        checked::object_gone(&batch);
        checked::handover_gone(slot);
    }
};

} // namespace sluice::detail

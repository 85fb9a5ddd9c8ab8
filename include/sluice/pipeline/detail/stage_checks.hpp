/// \file
/// What a pipeline of a checked backend tells of its slots and batches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/memory/detail/declared_range.hpp>
#include <sluice/pipeline/detail/batch_key.hpp>

namespace sluice::detail {

template <class T>
inline constexpr bool is_span_of_constants = requires {
    typename T::element_type;
    requires std::is_const_v<typename T::element_type>;
};

/// Calls `visit(range)` for the device and pinned memory that a value names or owns, as far as it shows its members;
/// `OwnersOnly`: that it owns. Where `visit` takes it, also whether the value, which is `const`, lets nobody write there.
template <bool OwnersOnly, class T, class Visit>
void visit_memory(const T& value, Visit& visit) {
    if constexpr (std::is_pointer_v<T> || std::is_arithmetic_v<T> || std::is_enum_v<T> ||
                  std::is_null_pointer_v<T>) {
        return;
    } else if constexpr (std::is_array_v<T>) {
        for (const auto& element : value)
            visit_memory<OwnersOnly>(element, visit);
    } else if constexpr (requires { typename T::backend; }) {
        constexpr bool owns = !requires { typename T::element_type; };
        if constexpr ((owns || !OwnersOnly) && requires { declared_range(value, false); }) {
            if constexpr (
                has_span<const T> || requires { value.block(); } || requires { value.values(); }) {
                if constexpr (requires { visit(checked::Range{}, true); })
                    visit(declared_range(value, false), owns || is_span_of_constants<T>);
                else
                    visit(declared_range(value, false));
            }
        }
    } else if constexpr (NamesMemory<T>) {
        return; // Ordinary memory of the host's.
    } else if constexpr (IsOptional<T>::value) {
        if (value)
            visit_memory<OwnersOnly>(*value, visit);
    } else if constexpr (IsTupleLike<T>::value) {
        std::apply([&](const auto&... members) { (visit_memory<OwnersOnly>(members, visit), ...); }, value);
    } else if constexpr (OwnsHostElements<T>) {
        if constexpr (std::is_class_v<std::remove_cvref_t<decltype(*std::begin(value))>>) {
            for (const auto& element : value)
                visit_memory<OwnersOnly>(element, visit);
        }
    } else if constexpr (std::is_empty_v<T>) {
        return;
    } else if constexpr (PlainAggregate<T>) {
        with_members(value, [&](const auto&... members) { (visit_memory<OwnersOnly>(members, visit), ...); });
    }
}

/// A slot maker that notes what each slot allocates.
template <class Make>
class ListenedMaker {
public:
    explicit ListenedMaker(Make& make) : make_(make) {}
    decltype(auto) operator()(int slot) {
        listening_.begin_list();
        return make_(slot);
    }
    const std::vector<checked::Range>& list(std::size_t slot) { return listening_.list(slot + 1); }

private:
    Make& make_;
    checked::Listening listening_;
};

/// Tells which memory an object has: what was allocated when it was made, and what it shows.
template <class T>
void tell_of_object(const T& object, std::vector<checked::Range> memory, const std::string& of,
                    std::size_t slot) {
    const auto add = [&](const checked::Range& range) { memory.push_back(range); };
    visit_memory<true>(object, add);
    checked::object_made(&object, memory.data(), memory.size(), of.c_str(), static_cast<int>(slot));
}

/// Of one pipeline.
template <std::size_t Stages>
struct StageChecks {
    bool on = true;
    std::array<std::uint32_t, Stages> labels{};
    std::vector<const void*> objects;
    std::vector<checked::Handed> handed; // Kept for its memory.

    StageChecks() = default;
    StageChecks(const StageChecks&) = delete;
    StageChecks& operator=(const StageChecks&) = delete;
    ~StageChecks() {
        for (const void* const object : objects)
            checked::object_gone(object);
    }
    /// Makes a stage's slots, and tells what each owns.
    template <class Slots, class Make>
    void make_slots(Slots& slots, Make& make, int count, const std::string& stage) {
        ListenedMaker<Make> listened(make);
        slots.make(listened, count, stage);
        for (std::size_t slot = 0; slot < slots.size(); ++slot) {
            objects.push_back(&slots[slot]);
            tell_of_object(slots[slot], listened.list(slot), "stage '" + stage + "'", slot);
        }
    }
    template <class Batch>
    void add_batch(const Batch& batch) {
        if (checked::knows_object(&batch)) {
            handed.push_back({&batch, {}, checked::Op::batch, false});
        } else {
            const auto add = [&](const checked::Range& range) {
                handed.push_back({nullptr, range, checked::Op::batch, false});
            };
            visit_memory<false>(batch, add);
        }
    }
    void add_declared(const std::vector<checked::Range>& ranges) {
        for (const checked::Range& range : ranges)
            handed.push_back({nullptr, range, checked::Op::declared, range.writes});
    }
};
struct NoStageChecks {};

/// Throws `Error` where a pipeline is to be checked and its backend is not.
template <class B>
void require_checked(const std::optional<bool>& checked) {
    if constexpr (!IsChecked<B>::value) {
        if (checked.value_or(false)) {
            throw Error("PipelineOptions::checked: the program was compiled without the checker; compile all "
                        "of it with "
                        "-DSLUICE_CHECKED=1");
        }
    }
}

} // namespace sluice::detail

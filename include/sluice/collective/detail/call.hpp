// One rank's part of a collective, without its types.
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

#include <sluice/backend/detail/calling_stage.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/collective/reduction.hpp>

namespace sluice::detail {

enum class CollectiveKind { all_reduce, reduce_scatter, all_gather, broadcast };

enum class CollectiveElement {
    int8,
    uint8,
    int32,
    uint32,
    int64,
    uint64,
    float32,
    float64,
    float16,
    bfloat16
};

inline const char* name_of(CollectiveKind kind) noexcept {
    constexpr const char* names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast"};
    return names[static_cast<int>(kind)];
}

inline const char* name_of(CollectiveElement element) noexcept {
    constexpr const char* names[] = {"int8",   "uint8",   "int32",   "uint32",  "int64",
                                     "uint64", "float32", "float64", "float16", "bfloat16"};
    return names[static_cast<int>(element)];
}

constexpr std::size_t bytes_of(CollectiveElement element) noexcept {
    constexpr std::size_t bytes[] = {1, 1, 4, 4, 8, 8, 4, 8, 2, 2};
    return bytes[static_cast<int>(element)];
}

/// Whether collectives take elements of `T`, and which they are.
template <class T>
inline constexpr bool is_collective_element =
    (std::is_integral_v<T> && !std::is_same_v<T, bool> &&
     (sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8)) ||
    std::is_same_v<T, float> || std::is_same_v<T, double> || float16_format<T> != Float16Format::none;

/// Whether an element is a floating-point number.
constexpr bool is_real(CollectiveElement element) noexcept { return element >= CollectiveElement::float32; }

template <class T>
constexpr CollectiveElement collective_element() noexcept {
    static_assert(is_collective_element<T>, "sluice: collectives take float, double, integers of 1, 4 or 8 "
                                            "bytes, and types of 16 bits that float16_format names");
    static_assert(float16_format<T> == Float16Format::none || sizeof(T) == 2,
                  "sluice: float16_format is for types of 16 bits");
    if constexpr (float16_format<T> == Float16Format::float16)
        return CollectiveElement::float16;
    else if constexpr (float16_format<T> == Float16Format::bfloat16)
        return CollectiveElement::bfloat16;
    else if constexpr (std::is_same_v<T, float>)
        return CollectiveElement::float32;
    else if constexpr (std::is_same_v<T, double>)
        return CollectiveElement::float64;
    else if constexpr (sizeof(T) == 1)
        return std::is_signed_v<T> ? CollectiveElement::int8 : CollectiveElement::uint8;
    else if constexpr (sizeof(T) == 4)
        return std::is_signed_v<T> ? CollectiveElement::int32 : CollectiveElement::uint32;
    else
        return std::is_signed_v<T> ? CollectiveElement::int64 : CollectiveElement::uint64;
}

/// What one rank brings to a collective. A plain value.
struct CollectiveCall {
    CollectiveKind kind = CollectiveKind::all_reduce;
    CollectiveElement element = CollectiveElement::float32;
    Reduction reduction = Reduction::sum;
    int root = 0; // of a broadcast
    const void* in = nullptr;
    void* out = nullptr;
    std::size_t count =
        0; // elements: of both sides of all_reduce and broadcast, of the shorter side of the others
    const char* stage = nullptr; // that enqueued it; null where none did

    /// Whether both ranks' calls are the same collective.
    bool matches(const CollectiveCall& other) const noexcept {
        return kind == other.kind && element == other.element && reduction == other.reduction &&
               root == other.root && count == other.count;
    }
    /// For messages.
    std::string text() const {
        std::string result =
            std::string(name_of(kind)) + " of " + std::to_string(count) + " " + name_of(element);
        if (kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter)
            result += std::string(" (") + to_string(reduction) + ")";
        if (kind == CollectiveKind::broadcast)
            result += " from rank " + std::to_string(root);
        if (stage != nullptr)
            result += std::string(" in stage '") + stage + "'";
        return result;
    }
};

/// Names of stages, kept for calls that may outlive their pipeline. Driven by one thread; names stay where they are.
class StageNames {
public:
    /// That of the stage whose callable this thread is in, if it is in one. Allocates for a new name.
    const char* now() {
        const std::string* const stage = CallingPipeline::stage();
        if (stage == nullptr)
            return nullptr;
        for (const Owned<std::string>& name : names_) {
            if (*name == *stage)
                return name->c_str();
        }
        return names_.emplace_back(make_owned<std::string>(*stage))->c_str();
    }

private:
    List<Owned<std::string>> names_;
};

inline std::string rank_text(int rank, int ranks) {
    return "rank " + std::to_string(rank) + " of " + std::to_string(ranks);
}
/// Two of its calls have met.
inline std::string twice_text(int rank, int ranks) {
    return "two collectives of " + rank_text(rank, ranks) +
           " ran at the same time; enqueue all of a communicator's on one stream, or order them by events";
}
/// `rank` has left, and `other` has come to `call`.
inline std::string left_text(int rank, int ranks, int other, const std::string& call) {
    return rank_text(rank, ranks) + " has left: its communicator was destroyed; rank " +
           std::to_string(other) + " needs it for " + call;
}

} // namespace sluice::detail

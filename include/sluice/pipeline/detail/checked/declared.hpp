// What a stage says that it reads and writes besides its slots.
#pragma once

#include <type_traits>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/memory/detail/checked/declared_range.hpp>

namespace sluice::detail {

/// Kept by a stage of a checked backend.
class DeclaredRanges {
public:
    template <class Memory>
    void add(const Memory& memory, bool writes) {
        ranges_.push_back(said_range(writes ? "Stage::writes" : "Stage::reads", memory, writes));
    }
    const List<checked::Range>& all() const noexcept { return ranges_; }
    /// Itself, for the pipeline.
    const DeclaredRanges* kept() const noexcept { return this; }

private:
    List<checked::Range> ranges_;
};

/// Keeps nothing.
struct NothingDeclared {
    template <class Memory>
    void add(const Memory&, bool) noexcept {}
    SLUICE_ALWAYS_INLINE static const DeclaredRanges* kept() noexcept { return nullptr; }
};

template <class B>
using Declared = std::conditional_t<IsChecked<B>::value, DeclaredRanges, NothingDeclared>;

} // namespace sluice::detail

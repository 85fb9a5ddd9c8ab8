// The offsets of a view before its values.
// FIRST: sluice::RaggedView: the values come first, then the offsets, which are std::int64_t
// AT-MOST: 1 error
#include <cstdint>

#include <sluice/ragged/view.hpp>

void look(const float* values, const std::int64_t* offsets, const sluice::RaggedCounts* counts) {
#if MISUSE
    const sluice::RaggedView<const float> rows{offsets, values, counts, 2, 8};
#else
    const sluice::RaggedView<const float> rows{values, offsets, counts, 2, 8};
#endif
    (void)rows;
}

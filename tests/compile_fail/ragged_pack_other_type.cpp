// Rows of another type than the packer's.
// EXPECT: RowsOf
// AT-MOST: 2 errors
#include <sluice/ragged.hpp>
#include <sluice/sluice.hpp>

#include <vector>

#if MISUSE
using Value = double;
#else
using Value = float;
#endif

void pack(sluice::RaggedPacker<float, sluice::Host>& packer, const std::vector<std::vector<Value>>& rows) {
    packer.pack(rows);
}

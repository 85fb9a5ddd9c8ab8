// A Host stream that is to read a batch of another backend's memory.
// EXPECT: RowsOn
// AT-MOST: 2 errors
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/rows.hpp>

/// The same as Host, and yet another backend.
struct Other : sluice::Host {};

#if MISUSE
using Owner = Other;
#else
using Owner = sluice::Host;
#endif

void use(sluice::HostStreamRef stream, sluice::DeviceSpan<float, sluice::Host> sums,
         const sluice::RaggedBatch<float, Owner>& batch) {
    sluice::ragged::sum(stream, sums, batch);
}

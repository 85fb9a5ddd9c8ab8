// Sums of what cannot be added up.
// FIRST: sluice::ragged: sums need results that are numbers
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/rows.hpp>

struct Box {
    float left, right;
};

void use(sluice::HostStreamRef stream, sluice::DeviceBuffer<float, sluice::Host>& sums,
         sluice::RaggedBatch<Box, sluice::Host>& boxes, sluice::RaggedBatch<float, sluice::Host>& numbers) {
    (void)boxes, (void)numbers;
#if MISUSE
    sluice::ragged::sum(stream, sums, boxes);
#else
    sluice::ragged::sum(stream, sums, numbers);
#endif
}

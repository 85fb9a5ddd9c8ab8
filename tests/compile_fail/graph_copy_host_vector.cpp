// A copy node from memory that no device copies from without a detour.
// EXPECT: a copy node goes between device and pinned memory
#include <vector>

#include <sluice/graph/graph_builder.hpp>

#if MISUSE
using From = std::vector<float>;
#else
using From = sluice::PinnedBuffer<float, sluice::Host>;
#endif

void build(sluice::DeviceSpan<float, sluice::Host> to, const From& from) {
    sluice::HostGraphBuilder builder;
    builder.copy(to, from);
}

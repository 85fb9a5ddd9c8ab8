// A copy node that is to copy another type than it was made for.
// EXPECT: a copy node keeps its type of elements and the way that it copies
// AT-MOST: 1 error
#include <sluice/graph/graph_builder.hpp>

#if MISUSE
using Element = int;
#else
using Element = float;
#endif

using B = sluice::Host;

void change(sluice::HostStreamRef stream, sluice::DeviceSpan<float, B> to, sluice::PinnedSpan<float, B> from,
            sluice::DeviceSpan<Element, B> other_to, sluice::PinnedSpan<Element, B> other_from) {
    sluice::HostGraphBuilder builder;
    const auto copied = builder.copy(to, from);
    auto executable = builder.instantiate();
    executable.set(copied, other_to, other_from);
    executable.launch(stream);
}

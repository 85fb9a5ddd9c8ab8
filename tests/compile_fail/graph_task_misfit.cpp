// A node's task that takes an argument.
// FIRST: sluice: what a node of a graph calls is called without arguments
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void build(sluice::HostGraphBuilder& builder) {
#if MISUSE
    builder.task([](int) {});
#else
    builder.task([] {});
#endif
}

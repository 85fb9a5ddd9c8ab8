// Elements that cannot be written.
// FIRST: sluice::PinnedBuffer: elements are neither const nor references
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#if MISUSE
using Element = const float;
#else
using Element = float;
#endif

void make() { sluice::PinnedBuffer<Element, sluice::Host> buffer(4); }

// Elements that cannot be written.
// FIRST: sluice::DeviceBuffer: elements are neither const nor references
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#if MISUSE
using Element = const float;
#else
using Element = float;
#endif

void make() { sluice::DeviceBuffer<Element, sluice::Host> buffer(4); }

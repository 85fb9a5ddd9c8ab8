// Buffers that cannot be written.
// FIRST: sluice::PingPong: elements are neither const nor references
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

#if MISUSE
using Element = const float;
#else
using Element = float;
#endif

std::size_t size(const sluice::PingPong<Element, sluice::Host>& pair) { return pair.size(); }

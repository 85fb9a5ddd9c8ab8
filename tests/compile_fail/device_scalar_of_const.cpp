// A value that cannot be set.
// FIRST: sluice::DeviceScalar: the type is neither const nor a reference
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

#if MISUSE
using Value = const float;
#else
using Value = float;
#endif

const float* data(const sluice::DeviceScalar<Value, sluice::Host>& scalar) { return scalar.data(); }

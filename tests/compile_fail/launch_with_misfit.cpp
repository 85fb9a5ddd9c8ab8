// A number for a kernel's pointer.
// FIRST: sluice::launch_with: a value that `arguments()` gives does not convert
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

#include <tuple>

#if MISUSE
using Parameter = int*;
#else
using Parameter = int;
#endif

void launch(sluice::HostStreamRef stream, void (*kernel)(Parameter)) {
    sluice::launch_with(stream, {}, kernel, [] { return std::tuple(1); });
}

// An owner of an event assigned by value: one event leaks, the other is destroyed twice.
// EXPECT: deleted
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <utility>

void replace(sluice::HostEvent& former, sluice::HostEvent& latter) {
#if MISUSE
    former = latter;
#else
    former = std::move(latter);
#endif
}

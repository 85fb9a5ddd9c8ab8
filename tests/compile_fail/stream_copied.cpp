// An owner of a stream copied by value: two owners of one stream.
// EXPECT: deleted
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <utility>

struct Worker {
    sluice::HostStream stream;
};

Worker make(sluice::HostStream& stream) {
#if MISUSE
    return Worker{stream};
#else
    return Worker{std::move(stream)};
#endif
}

// A stage's stream that is gone before the pipeline is made.
// EXPECT: sluice::BasicStream: a reference to a temporary stream would dangle
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void run(const sluice::HostStream& stream) {
#if MISUSE
    const sluice::StageOptions<sluice::Host> options{.stream = sluice::HostStream{}};
#else
    const sluice::StageOptions<sluice::Host> options{.stream = stream};
#endif
    (void)stream;
    (void)options;
}

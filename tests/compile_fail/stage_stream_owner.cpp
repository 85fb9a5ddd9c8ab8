// A stage that takes what owns a stream.
// FIRST: sluice::Stage: a callable takes its stream by value, as a StreamRef or a HostStreamRef
#include <sluice/sluice.hpp>

void run() {
#if MISUSE
    using Taken = sluice::HostStream&;
#else
    using Taken = sluice::HostStreamRef;
#endif
    const sluice::Stage stage{"load", [](Taken, const int&) {}};
    (void)stage;
}

// A callable that takes its stream behind the batch.
// FIRST: sluice::Stage: a callable takes its stream first
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
#if MISUSE
    const sluice::Stage stage{"stage", [](const int&, Slot&, sluice::HostStreamRef) {}};
#else
    const sluice::Stage stage{"stage", [](sluice::HostStreamRef, const int&, Slot&) {}};
#endif
    (void)stage;
}

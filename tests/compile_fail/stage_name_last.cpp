// A stage whose name comes last.
// FIRST: sluice::Stage: a stage is made of its name and what it calls
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
    const auto callable = [](sluice::HostStreamRef, const int&, Slot&) {};
#if MISUSE
    const sluice::Stage stage{callable, "stage"};
#else
    const sluice::Stage stage{"stage", callable};
#endif
    (void)stage;
}

// Trials that are run without being told how.
// FIRST: sluice::advise: what runs a trial must be callable as run(AdviceTrial&)
#include <sluice/report.hpp>

void run() {
#if MISUSE
    (void)sluice::advise([] {});
#else
    (void)sluice::advise([](sluice::AdviceTrial&) {});
#endif
}

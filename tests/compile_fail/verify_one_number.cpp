// A run that gives no range of results.
// FIRST: sluice::verify_schedules: what runs the work must be callable as run(Schedule), and return its results
#include <sluice/sluice.hpp>

#include <vector>

void run() {
#if MISUSE
    (void)sluice::verify_schedules([](sluice::Schedule) { return 1.0F; });
#else
    (void)sluice::verify_schedules([](sluice::Schedule) { return std::vector<float>{1}; });
#endif
}

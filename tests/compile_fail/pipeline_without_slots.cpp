// Three stages, and slots between two of them only.
// EXPECT: sluice::Pipeline: a stage takes the same output twice; give what it makes a slot maker of its own
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};

void run() {
    const auto make = [](int) { return Images{}; };
    sluice::Stage first{"first", [](sluice::HostStreamRef, const int&, Images&) {}};
    sluice::Stage middle{"middle", [](sluice::HostStreamRef, Images&, Images&) {}};
    sluice::Stage last{"last", [](sluice::HostStreamRef, Images&) {}};
#if MISUSE
    sluice::Pipeline pipeline{sluice::Stages{first, middle, last}, sluice::Slots{make}};
#else
    sluice::Pipeline pipeline{sluice::Stages{first, middle, last}, sluice::Slots{make, make}};
#endif
    const int batch = 1;
    pipeline.submit(batch);
}

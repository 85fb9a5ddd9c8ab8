// Random shapes of which some stages are CPU stages.
#include "pipeline/random_dags.hpp"

namespace pipeline_random_shapes_cpu {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("random shapes: with CPU stages, each gives the bits of a plain loop, each time in another way") {
    check_random_shapes<Delayed<TestBackend>, true, false, 101, 106, 108, 103, 110>(250);
}

} // namespace pipeline_random_shapes_cpu

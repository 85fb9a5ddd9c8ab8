// Random shapes of stages that all run on the backend's streams.
#include "pipeline/random_dags.hpp"

namespace pipeline_random_shapes {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("random shapes: each gives the bits of a plain loop, each time in another way") {
    check_random_shapes<Delayed<TestBackend>, false, false, 2, 9, 10, 7, 11, 12>(300);
}

} // namespace pipeline_random_shapes

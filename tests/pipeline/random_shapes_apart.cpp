// Random shapes of which some stages are CPU stages, beside streams that are no threads of the Host backend's.
#include "pipeline/random_dags.hpp"
#include "support/apart_backend.hpp"

namespace pipeline_random_shapes_apart {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("random shapes: with CPU stages on threads, each gives the bits of a plain loop, each time in "
          "another way") {
    check_random_shapes<Apart, true, false, 203, 204, 205, 206, 209>(250);
}

} // namespace pipeline_random_shapes_apart

// Random shapes in which stages change slots in place, and take what was made of batches before.
#include "pipeline/random_dags.hpp"
#include "support/apart_backend.hpp"

namespace pipeline_random_slots {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("random slots: in place and with batches before, each gives the bits of a plain loop") {
    check_random_shapes<Delayed<TestBackend>, false, true, 310, 315, 304, 300, 323, 307>(240);
}

TEST_CASE("random slots: the same on threads beside streams") {
    check_random_shapes<Apart, true, true, 310, 309, 300, 322, 317>(200);
}

} // namespace pipeline_random_slots

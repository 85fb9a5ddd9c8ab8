// The tests' chains on the Cuda backend.
#include <augment/apply.cuh>

#include "augment/chains_bodies.hpp"

// The tests' chains on the Host backend.
#include <augment/annotations.hpp>
#include <augment/apply.hpp>

#include "augment/chains_bodies.hpp"

/// \file
/// Collectives between devices: reductions, gathers and broadcasts as work on streams. Optional: `sluice.hpp` leaves it out.
#pragma once

#include <sluice/collective/bucketed_reduction.hpp>
#include <sluice/collective/collectives.hpp>
#include <sluice/collective/communicator.hpp>

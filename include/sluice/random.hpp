/// \file
/// Random numbers by counter, the same on CPU and GPU.
#pragma once

#include <sluice/random/philox.hpp>

/// \file
/// The checker.
#pragma once

#include <sluice/backend/detail/checked/interface.hpp>

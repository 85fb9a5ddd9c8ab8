/// \file
/// All operations that make ragged batches out of others, for Host streams. CUDA streams need
/// <sluice/ragged/reshape.cuh>, which says what holds for all of them.
#pragma once

#include <sluice/ragged/convert.hpp>
#include <sluice/ragged/join.hpp>
#include <sluice/ragged/order.hpp>
#include <sluice/ragged/select.hpp>

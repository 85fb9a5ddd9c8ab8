/// \file
/// Ragged batches: rows of uneven length, how they are packed, copied and laid out. What is done with the rows is in
/// <sluice/ragged/rows.cuh> and <sluice/ragged/reshape.cuh>, or for Host streams alone in <sluice/ragged/rows.hpp> and
/// <sluice/ragged/reshape.hpp>.
#pragma once

#include <sluice/ragged/buckets.hpp>
#include <sluice/ragged/column_packer.hpp>
#include <sluice/ragged/layout.hpp>
#include <sluice/ragged/operands.hpp>
#include <sluice/ragged/packer.hpp>
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/view.hpp>
#include <sluice/ragged/workspace.hpp>

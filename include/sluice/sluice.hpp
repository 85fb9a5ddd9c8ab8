/// \file
/// All of sluice that needs no kernel: backends, memory, random numbers, pipelines.
#pragma once

#include <sluice/backend/config.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/memory/span.hpp>
#include <sluice/random/philox.hpp>

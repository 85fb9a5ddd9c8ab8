/// \file
/// Buffers on devices and in pinned memory, spans of them, and copies in stream order.
#pragma once

#include <sluice/memory/accesses.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/memory/pitched.hpp>
#include <sluice/memory/span.hpp>

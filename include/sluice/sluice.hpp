/// \file
/// All of sluice that needs no kernel: backends, memory, random numbers, pipelines.
#pragma once

#include <sluice/backend/config.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/capture.hpp>
#include <sluice/graph/control_flow.hpp>
#include <sluice/graph/device_scalar.hpp>
#include <sluice/graph/graph.hpp>
#include <sluice/graph/graph_builder.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>
#include <sluice/memory/span.hpp>
#include <sluice/pipeline/pipeline.hpp>
#include <sluice/pipeline/readback.hpp>
#include <sluice/pipeline/schedule.hpp>
#include <sluice/pipeline/slot_ring.hpp>
#include <sluice/pipeline/source.hpp>
#include <sluice/pipeline/stage.hpp>
#include <sluice/pipeline/two_stream_pipeline.hpp>
#include <sluice/pipeline/verify.hpp>
#include <sluice/random/philox.hpp>

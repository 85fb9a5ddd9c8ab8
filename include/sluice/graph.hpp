/// \file
/// Graphs: captured from a stream, kept and replayed, or built by hand, with conditions and loops.
#pragma once

#include <sluice/graph/built_graph_exec.hpp>
#include <sluice/graph/capture.hpp>
#include <sluice/graph/control_flow.hpp>
#include <sluice/graph/device_scalar.hpp>
#include <sluice/graph/graph.hpp>
#include <sluice/graph/graph_builder.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/graph/graph_nodes.hpp>
#include <sluice/graph/launch_with.hpp>
#include <sluice/graph/ping_pong.hpp>

// What the examples of docs/guide/in_flight.md take for granted.
#pragma once

#include "pipeline_parts.hpp"

namespace documents_in_flight {

using namespace documents_pipeline_parts;

extern int steps;
void fill(int step, Batch& to);

} // namespace documents_in_flight

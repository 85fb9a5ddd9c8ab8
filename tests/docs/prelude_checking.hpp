// What the fragments of docs/guide/checking.md take for granted.
#pragma once

#include <sluice/sluice.hpp>

namespace documents_checking {

using Features = sluice::DeviceBuffer<float>;
extern sluice::DeviceBuffer<float> weights;
extern sluice::DeviceBuffer<float> workspace;
void run_encoder(sluice::StreamRef, const int&, Features&);
void scan(sluice::StreamRef, const Features&, sluice::DeviceBuffer<float>&);

} // namespace documents_checking

// What the fragments of docs/guide/checking.md take for granted.
#pragma once

#include <stdexcept>
#include <vector>

#include <sluice/sluice.hpp>

namespace documents_checking {

using Features = sluice::DeviceBuffer<float>;
extern sluice::DeviceBuffer<float> weights;
extern sluice::DeviceBuffer<float> workspace;
std::vector<float> losses_of_a_run(sluice::Schedule);
void run_encoder(sluice::StreamRef, const int&, Features&);
void scan(sluice::StreamRef, const Features&, sluice::DeviceBuffer<float>&);

} // namespace documents_checking

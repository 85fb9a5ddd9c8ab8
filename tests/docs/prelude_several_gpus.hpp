// What the fragments of docs/guide/several_gpus.md take for granted.
#pragma once

#include <thread>
#include <vector>

#include <sluice/collective.hpp>
#include <sluice/sluice.hpp>

namespace documents_several_gpus {

struct Batch {};
using Gradient = sluice::DeviceBuffer<float>;
extern Gradient weights;
extern const sluice::Communicator<>& communicator;
extern const std::vector<Batch> my_batches;
void backward(sluice::StreamRef, const Batch&, Gradient&);
void backward_of_layer(sluice::StreamRef, std::size_t, sluice::DeviceSpan<float>);
void take_step(sluice::StreamRef, sluice::DeviceSpan<const float>, Gradient&);
void train(const sluice::Communicator<>&);

} // namespace documents_several_gpus

// What the fragments of docs/guide/errors.md take for granted.
#pragma once

#include <cstddef>

#include <sluice/sluice.hpp>

namespace documents_errors {

using Batch = sluice::PinnedBuffer<float>;
extern Batch batch;
extern sluice::Readback<float> losses;
extern sluice::Source<Batch, sluice::NoState, void (*)(std::size_t, Batch&)> source;
extern sluice::Pipeline<sluice::Stages<sluice::Stage<void (*)(sluice::StreamRef, const Batch&)>>,
                        sluice::Slots<>>
    pipeline;

} // namespace documents_errors

// What the fragments of get-started.md take for granted.
#pragma once

#include <cstddef>

#include <sluice/sluice.hpp>

namespace documents_get_started {

using Batch = sluice::PinnedBuffer<float>;
extern sluice::Pipeline<sluice::Stages<sluice::Stage<void (*)(sluice::StreamRef, const Batch&)>>,
                        sluice::Slots<>>
    pipeline;

} // namespace documents_get_started

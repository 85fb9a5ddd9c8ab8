/// \file
/// Where a fault came from, as far as that can be told.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <sluice/backend/error.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice::detail {

/// Whether an error may be of work that an earlier call enqueued: CUDA reports such a one from any later call.
inline bool is_late(const Error& error) noexcept {
    const std::string_view name = error.name();
    for (const std::string_view late :
         {"cudaErrorIllegalAddress", "cudaErrorLaunchFailure", "cudaErrorAssert",
          "cudaErrorMisalignedAddress", "cudaErrorInvalidAddressSpace", "cudaErrorInvalidPc",
          "cudaErrorHardwareStackError", "cudaErrorIllegalInstruction", "cudaErrorLaunchTimeout",
          "cudaErrorECCUncorrectable", "cudaErrorTensorMemoryLeak", "cudaErrorContained",
          "cudaErrorExternalDevice"}) {
        if (name == late)
            return true;
    }
    return false;
}

struct FaultPlace {
    int stage = -1;
    std::optional<std::size_t> batch;
    bool or_earlier = false;
};

/// The work that failed first, of the batches before `submitted`, where their events tell; otherwise the stage of
/// `stream`, on which the fault is known. Events tell of the last batch in each slot: where the oldest one has failed, it
/// may be for an earlier one.
template <class Core>
FaultPlace find_fault(Core& core, std::size_t submitted, BasicStreamRef<typename Core::backend> stream) {
    const std::size_t slots = core.order->slots();
    const std::size_t oldest = submitted > slots ? submitted - slots : 0;
    for (std::size_t batch = oldest; batch < submitted; ++batch) {
        for (std::size_t stage = 0; stage < Core::stages; ++stage) {
            if (!Core::Shape::needs_event(stage))
                continue;
            try {
                (void)core.order->event(stage, batch).is_done();
            } catch (...) {
                return {static_cast<int>(stage), batch, batch == oldest && oldest > 0};
            }
        }
    }
    const auto stage = core.streams.stage_of(stream);
    return {stage ? static_cast<int>(*stage) : -1, std::nullopt, false};
}

} // namespace sluice::detail

/// \file
/// Where a fault came from, as far as that can be told.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
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

/// Called from within a handler: throws what a slot maker has thrown in an `Error` that names the stage and the slot.
[[noreturn]] inline void throw_maker_failure(const std::string& stage, int slot) {
    const std::string words = "making slot " + std::to_string(slot) + " failed: ";
    std::string explanation = "an exception of an unknown type";
    try {
        throw;
    } catch (const Error& error) {
        std::throw_with_nested(error.after(words).in_stage(stage));
    } catch (const std::exception& exception) {
        explanation = exception.what();
    } catch (...) {
    }
    std::throw_with_nested(Error(words + explanation).in_stage(stage));
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

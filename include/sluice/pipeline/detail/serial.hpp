/// \file
/// Schedule::serial: one stage after another, one batch after another.
#pragma once

#include <array>
#include <cstddef>

#include <sluice/pipeline/detail/executor.hpp>
#include <sluice/pipeline/detail/stage_core.hpp>
#include <sluice/pipeline/source.hpp>

namespace sluice::detail {

/// All stages of a device are on one stream, and need no marks. Where the work goes from one device to another, or to a
/// thread and back, each stage waits for the one before it.
template <class Core>
class SerialExecutor : public EagerExecutor {
    using Shape = typename Core::Shape;
    static constexpr std::size_t stages = Core::stages;

public:
    static constexpr bool takes_types = true;

    explicit SerialExecutor(Core& core) {
        for (std::size_t stage = 0; stage < stages; ++stage) {
            const std::size_t former = (stage + stages - 1) % stages;
            const bool threads = Shape::aside[stage] || Shape::aside[former];
            // Of one thread's batches, each comes after the one before by itself.
            waits_[stage] =
                former != stage && (threads || !(core.streams.of(stage, 0) == core.streams.of(former, 0)));
            if (waits_[stage] && !Shape::aside[former])
                (threads ? signals_ : records_)[former] = true;
        }
    }

    template <class Batch>
    void submit(Core& core, std::size_t number, const Batch& batch,
                const SourceHold<typename Core::backend>& hold) {
        Core::for_each_stage([&](auto stage) {
            const auto stream = core.streams.of(stage, number);
            if (waits_[stage] && (stage > 0 || number > 0)) {
                const std::size_t former = (stage + stages - 1) % stages;
                const std::size_t of_batch = stage > 0 ? number : number - 1;
                if constexpr (Shape::aside[stage])
                    core.add_wait(former, of_batch);
                else
                    core.order->wait(stream, former, of_batch);
            }
            core.follows = stage > 0 && !waits_[stage];
            core.template run<stage>(stream, number, batch);
            if constexpr (!Shape::aside[stage])
                core.order->mark(stream, stream, stage, number, records_[stage], signals_[stage]);
            core.template release<stage>(number, hold);
        });
        core.follows = false;
    }

    static void await_stage(Core& core, std::size_t stage, std::size_t number) {
        if (Shape::aside[stage])
            core.await_on_thread(stage, number);
        else
            core.streams.await(stage, number);
    }

private:
    std::array<bool, stages> waits_{};
    std::array<bool, stages> records_{};
    std::array<bool, stages> signals_{};
};

} // namespace sluice::detail

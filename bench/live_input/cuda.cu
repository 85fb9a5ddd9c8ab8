/// \file
/// live_input on CUDA, through sluice and by hand.
#include <cstdlib>
#include <memory>

#include "by_hand.cuh"
#include "cuda_kit.cuh"
#include "pipelines.hpp"

namespace bench::live {

Rows cuda_rows() {
    // So that no two streams share a queue to the device, where the clocks' would wait behind the stages'.
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    Rows rows;
    if (sluice::Cuda::device_count() == 0)
        return rows;
    auto ends = std::make_unique<CudaEnds>();
    const auto kit = std::make_shared<CudaKit>(*ends);
    rows.device = sluice::Cuda::device_name(0);
    add_rows(
        kit, rows,
        [&](std::size_t bound, bool tries) -> MakeSubject {
            return [kit, bound, tries] { return std::make_unique<OverloadedByHand>(*kit, bound, tries); };
        },
        [&](std::size_t stages, std::size_t way) -> MakeSubject {
            // A graph of whole steps is what the last way is, too.
            constexpr PacedByHand::Way ways[] = {PacedByHand::serial,           PacedByHand::overlapped,
                                                 PacedByHand::one_graph,        PacedByHand::graph_a_slot,
                                                 PacedByHand::graph_each_stage, PacedByHand::one_graph};
            return
                [kit, stages, way = ways[way]] { return std::make_unique<PacedByHand>(*kit, stages, way); };
        });
    rows.bound.push_back(bound_row(kit, "in_flight by default", 0));
    rows.bound.push_back(bound_row(kit, "in_flight 1,000,000", no_bound));
    rows.bound.push_back({"by hand", [kit, steps = std::make_shared<StepsByHand>(*kit)] {
                              return host_time(
                                  CudaKit::burst_steps, [&] { steps->step(); }, [&] { steps->sync(); });
                          }});
    rows.ends = std::move(ends);
    return rows;
}

} // namespace bench::live

/// \file
/// Augmentation on CUDA, beside copies and beside kernels written by hand. See augment.hpp.
#include <augment/apply.cuh>

#include "augment.hpp"
#include "augment_baselines.cuh"

namespace {

using namespace bench;
using sluice::Cuda;

template <class Out, class Chain>
void add_beside_copy(int images, const std::string& name, const Chain& chain, Effort effort) {
    effort.bytes = static_cast<std::size_t>(images) * bytes_moved<Out>(chain);
    add_timed(
        "cuda/batch:" + std::to_string(images) + "/" + name + "/beside_copy", effort, Cuda::counts(),
        [=] { return AugmentSubject<Cuda, Out, Chain>(images, chain); },
        [=] { return CopyOfBytes(effort.bytes); });
}

void add_beside_by_hand(int images, const Effort& effort) {
    add_timed(
        "cuda/batch:" + std::to_string(images) + "/published/beside_by_hand", effort, Cuda::counts(),
        [=] {
            return AugmentSubject<Cuda, float, augment::PublishedChain>(images, augment::published_chain());
        },
        [=] { return ChainByHand(images); });
}

} // namespace

void bench::add_cuda_benchmarks() {
    if (!describe_device())
        return;
    for (const int images : {32, 256}) {
        const Effort effort{images == 32 ? 50 : 10, 8, 5};
        for_each_operator([&](const char* name, const auto& chain) {
            add_beside_copy<float>(images, name, chain, effort);
        });
        add_beside_copy<float>(images, "published", augment::published_chain(), effort);
        add_beside_copy<nn::Half>(images, "published_half", augment::published_chain(), effort);
        add_beside_by_hand(images, effort);
    }
}

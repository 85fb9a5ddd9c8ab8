// The box losses on the Cuda backend.
#include <algorithm>

#include <nn/core/ceil_div.hpp>
#include <nn/losses/boxes/detail/few_boxes.cuh>
#include <nn/losses/boxes/detail/instantiate.hpp>
#include <nn/losses/boxes/detail/kernels.cuh>
#include <nn/losses/boxes/giou_loss.hpp>

namespace nn::detail {

namespace {

unsigned tiles_for(std::int64_t count, std::int64_t per_tile) {
    return static_cast<unsigned>(std::clamp<std::int64_t>(ceil_div(count, per_tile), 1, most_tiles));
}

} // namespace

template <bool skips, class Term, sluice::Backend B>
void masked_mean(sluice::BasicStreamRef<B> stream, const Term& term, const MaskSums& sums) {
    masked_mean_kernel<skips>
        <<<tiles_for(sums.boxes, values_at_once), loss_threads, 0, stream.get()>>>(term, sums);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

template <class Formula, class P, class U, class G, sluice::Backend B>
void run_rows(sluice::BasicStreamRef<B> stream, const RowArguments<P, U, G>& arguments) {
    const std::int64_t room = arguments.targets.row_capacity();
    const bool few = room <= few_rows_at_most && arguments.width > 0 &&
                     arguments.width <= few_width_at_most &&
                     arguments.targets.value_capacity() <= few_values_a_row * room;
    if (few && arguments.work == 1 && has_clusters()) { // a heavy formula wants all of the device
        return arguments.gradient != nullptr ? launch_few_boxes<Formula, true>(stream, arguments)
                                             : launch_few_boxes<Formula, false>(stream, arguments);
    }
    const unsigned tiles = tiles_for(arguments.rows, arguments.rows_per_tile);
    const auto kernel = arguments.gradient != nullptr ? &rows_kernel<Formula, true, P, U, G>
                                                      : &rows_kernel<Formula, false, P, U, G>;
    kernel<<<tiles, loss_threads, 0, stream.get()>>>(arguments);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

template <class Formula, class P, class U, class G, sluice::Backend B>
void run_loop(sluice::BasicStreamRef<B> stream, const RowArguments<P, U, G>& arguments) {
    const auto kernel = arguments.gradient != nullptr ? &one_row_kernel<Formula, true, P, U, G>
                                                      : &one_row_kernel<Formula, false, P, U, G>;
    for (std::int64_t row = 0; row < arguments.rows; ++row) {
        kernel<<<1, loss_threads, 0, stream.get()>>>(arguments, row);
        SLUICE_CUDA_CHECK(cudaGetLastError());
    }
    if (arguments.mean != nullptr) {
        mean_of_rows_kernel<<<1, 32, 0, stream.get()>>>(arguments);
        SLUICE_CUDA_CHECK(cudaGetLastError());
    }
}

template <class Formula, class P, class U, class G, sluice::Backend B>
void run_values(sluice::BasicStreamRef<B> stream, const ValueArguments<P, U, G>& arguments) {
    const unsigned tiles = tiles_for(arguments.predictions.value_capacity(), values_at_once);
    const auto kernel = arguments.gradient != nullptr ? &values_kernel<Formula, true, P, U, G>
                                                      : &values_kernel<Formula, false, P, U, G>;
    kernel<<<tiles, loss_threads, 0, stream.get()>>>(arguments);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

NN_INSTANTIATE_GIOU_LOSS(sluice::Cuda)

} // namespace nn::detail

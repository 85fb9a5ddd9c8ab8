// The elementwise operators on the Host backend.
#include <nn/elementwise/detail/instantiate.hpp>

namespace nn {

NN_INSTANTIATE_ELEMENTWISE(sluice::Host)
NN_INSTANTIATE_MAPS(sluice::Host, float)
NN_INSTANTIATE_MAPS(sluice::Host, Bfloat16)
NN_INSTANTIATE_PAD_CHANNELS(sluice::Host, float, float)
NN_INSTANTIATE_PAD_CHANNELS(sluice::Host, Half, float)
NN_INSTANTIATE_PAD_CHANNELS(sluice::Host, Half, Half)

std::size_t sum_scratch(std::size_t rows, std::size_t columns) {
    std::size_t partial_sums = 0;
    while (rows > detail::rows_per_sum) {
        rows = detail::sums_of(rows);
        partial_sums += rows;
    }
    return partial_sums * columns;
}

} // namespace nn

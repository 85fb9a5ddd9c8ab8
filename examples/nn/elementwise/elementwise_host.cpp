// The operators on the Host backend.
#include <nn/elementwise/for_each.hpp>

#include <nn/elementwise/detail/elementwise.inl>
#include <nn/elementwise/detail/maps.inl>
#include <nn/elementwise/detail/pixels.inl>
#include <nn/elementwise/detail/sums.inl>
#include <nn/losses/detail/cross_entropy.inl>

namespace nn {

using OperatorBackend = sluice::Host;

std::size_t sum_scratch(std::size_t rows, std::size_t columns) {
    std::size_t partial_sums = 0;
    while (rows > detail::rows_per_sum) {
        rows = detail::sums_of(rows);
        partial_sums += rows;
    }
    return partial_sums * columns;
}

} // namespace nn

#include <nn/elementwise/detail/instantiate.hpp>
#include <nn/elementwise/detail/instantiate_maps.hpp>

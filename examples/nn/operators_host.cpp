// The operators on the Host backend.
#include <nn/operators/for_each.hpp>

#include <nn/operators/bodies/elementwise.hpp>
#include <nn/operators/bodies/loss.hpp>
#include <nn/operators/bodies/maps.hpp>
#include <nn/operators/bodies/pixels.hpp>
#include <nn/operators/bodies/sums.hpp>

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

#include <nn/operators/bodies/instantiate.hpp>
#include <nn/operators/bodies/instantiate_maps.hpp>

// Batch normalisation on the Host backend.
#include <nn/norm/detail/instantiate.hpp>

namespace nn {

NN_INSTANTIATE_BATCH_NORM_BACKEND(sluice::Host)

std::size_t batch_norm_scratch(std::size_t rows, std::size_t channels) {
    return 2 * channels * detail::row_parts(rows);
}

} // namespace nn

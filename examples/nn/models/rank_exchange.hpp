/// \file
/// What a decoder's ranks exchange.
#pragma once

namespace nn {

/// What ranks exchange of the layers nearest the features, whose weights are many and whose rows are few.
enum class RankExchange {
    automatic, ///< whichever of the others takes least time
    /// The first two layers' weights are divided among the ranks. Each multiplies all ranks' rows by its part, and what is
    /// exchanged are the features, the second layer's output and its gradient. The number of ranks, times 4, divides the
    /// channels between the two layers.
    shards,
    factors, ///< the rows of a layer's inputs and of its output's gradients, where they are fewer than its weights
    gradients, ///< of all layers
};

} // namespace nn

/// \file
/// What a decoder needs to take its steps together with those of other ranks.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <nn/elementwise/elementwise.hpp>
#include <nn/gemm/matrix.hpp>
#include <sluice/collective/bucketed_reduction.hpp>

namespace nn {

/// Memory for what ranks exchange. The weights of layers below `divided_layers`, which are two or none, are divided among the
/// ranks. The others below `factor_layers` exchange factors: the rows of their inputs and of their outputs' gradients. The
/// gradients of the rest, and of the tail, are the parts of a reduction, in the order in which the backward pass comes to them; a
/// part is the weights', then the bias's, each rounded up to `alignment` elements.
template <sluice::Backend B>
struct DecoderExchange {
    static constexpr std::size_t alignment = 64;
    static constexpr std::size_t bucket_bytes = std::size_t{4} << 20;
    /// Of the exchange's stream: short kernels that much waits for get the next free multiprocessor.
    static constexpr int first = -5;

    static constexpr std::size_t aligned(std::size_t elements) {
        return (elements + alignment - 1) / alignment * alignment;
    }

    DecoderExchange(const sluice::Communicator<B>& end, std::span<const std::size_t> sizes)
        : communicator(&end), reduction(end, sizes, {.bytes = bucket_bytes, .priority = first}) {}

    std::size_t ranks() const { return static_cast<std::size_t>(communicator->ranks()); }
    bool is_divided(std::size_t layer) const { return layer < divided_layers; }
    std::size_t rows_of_all(std::size_t rows) const { return rows * ranks(); }
    /// This rank's rows among those of all.
    struct Part {
        sluice::DeviceSpan<float, B> elements;
        Matrix<float, B> with_columns(std::size_t columns) const {
            return {elements, elements.size() / columns, columns};
        }
    };
    Part own_part(sluice::DeviceSpan<float, B> all) const {
        const std::size_t size = all.size() / ranks();
        return {all.subspan(size * static_cast<std::size_t>(communicator->rank()), size)};
    }
    /// Part `i` of the reduction is complete on `side`. Where there are gathers, the last one is left for `complete_last`, so
    /// that no gather, which an update waits for, comes after the reduction of the last bucket.
    void complete(sluice::BasicStreamRef<B> side, std::size_t i) {
        if (factor_layers == 0 || i + 1 < reduction.parts())
            reduction.ready(side, i);
    }
    void complete_last(sluice::BasicStreamRef<B> stream) {
        if (factor_layers > 0)
            reduction.ready(stream, reduction.parts() - 1);
    }
    /// The reductions' stream waits for what `stream` holds so far.
    void follow(sluice::BasicStreamRef<B> stream) {
        written.record(stream);
        reduction.stream().wait(written);
    }

    /// `stream` waits for what the reductions' stream holds so far.
    void lead(sluice::BasicStreamRef<B> stream) {
        exchanged.record(reduction.stream());
        stream.wait(exchanged);
    }

    const sluice::Communicator<B>* communicator;
    sluice::BucketedReduction<float, B> reduction;
    std::size_t factor_layers = 0;
    std::size_t divided_layers = 0;
    std::vector<sluice::DeviceBuffer<float, B>> inputs;    // of all ranks, by layer
    std::vector<sluice::DeviceBuffer<float, B>> gradients; // likewise; none where they are elsewhere
    sluice::DeviceBuffer<float, B>
        partial; // this rank's share of the second divided layer's output, for all ranks
    sluice::DeviceBuffer<float, B> whole;    // a divided layer's weights, of all ranks
    sluice::DeviceBuffer<float, B> ones{2};  // the factors of a step that collects gradients
    sluice::DeviceBuffer<StepPart, B> parts; // the weights that reduced gradients belong to
    sluice::BasicEvent<B> written;
    sluice::BasicEvent<B> exchanged;
    sluice::BasicEvent<B> weights_read; // of layers whose gradients are reduced, by the backward pass
    std::vector<sluice::BasicEvent<B>> gathered; // gradients, by layer
};

} // namespace nn

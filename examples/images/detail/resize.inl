// Bodies of resize.hpp.
#pragma once

#include <string>

#include <sluice/memory/copy.hpp>

namespace images {

template <sluice::Backend B>
Resize<B>::Resize(const BilinearWeights& weights) : weights_(weights) {
    if constexpr (!std::is_same_v<B, sluice::Host>) {
        std::vector<std::int32_t> tables;
        detail::append_table(weights.down(), tables);
        detail::append_table(weights.across(), tables);
        tables_ = sluice::DeviceBuffer<std::int32_t, B>(tables.size());
        const sluice::BasicStream<B> stream;
        sluice::copy_and_wait(stream, tables_, tables);
    }
}

template <class Out, sluice::Backend B>
void detail::require_resizable(const BilinearWeights& weights, const Images<const std::uint8_t, B>& in,
                               const Images<Out, B>& out) {
    using augment::detail::counted;
    using augment::detail::text_of;
    if (!(in.shape() == weights.from()) || !(out.shape() == weights.to()) || in.count() != out.count()) {
        throw sluice::Error("a resize from " + text_of(weights.from()) + " to " + text_of(weights.to()) +
                            " was given " + counted(in.count(), "image") + " of " + text_of(in.shape()) +
                            " and room for " + std::to_string(out.count()) + " of " + text_of(out.shape()));
    }
    if (in.layout() != Layout::interleaved)
        throw sluice::Error("a resize was given planar images; it reads interleaved ones");
}

} // namespace images

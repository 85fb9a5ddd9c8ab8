/// \file
/// A step of many tiny kernels: launching them is all there is to it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <graph_replay/kernels.hpp>
#include <graph_replay/options.hpp>
#include <nn/core/device.hpp>
#include <sluice/sluice.hpp>

namespace graph_replay {

/// `length` kernels, each of which reads what the one before it wrote.
template <sluice::Backend B>
class Chain {
public:
    using StreamRef = sluice::BasicStreamRef<B>;

    explicit Chain(std::size_t length) : length_(length), values_(256) {}

    std::string name() const { return "chain:" + std::to_string(length_); }
    void reset(StreamRef stream) { sluice::fill_bytes(stream, values_, 0); }
    void prepare(StreamRef, std::size_t) {}

    void work(StreamRef stream) {
        for (std::size_t link = 0; link < length_; ++link)
            nudge(stream, values_, static_cast<float>(link % 7));
    }

    std::vector<float> results(StreamRef stream) { return nn::to_host(stream, values_); }

private:
    std::size_t length_;
    sluice::DeviceBuffer<float, B> values_;
};

} // namespace graph_replay

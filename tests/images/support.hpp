// What the tests of examples/images share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <images/resize.hpp>
#include <nn/core/device.hpp>
#include <sluice/sluice.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/random_values.hpp"

namespace images_test {

using B = sluice::test::TestBackend;
using Stream = sluice::BasicStream<B>;
using images::Images;
using images::ImageShape;
using images::Layout;

inline constexpr Layout layouts[] = {Layout::interleaved, Layout::planar};

inline std::size_t numbers_in(ImageShape shape) {
    return static_cast<std::size_t>(shape.channels) * static_cast<std::size_t>(shape.height) *
           static_cast<std::size_t>(shape.width);
}

/// Interleaved images in another layout.
template <class T>
std::vector<T> in_layout(const std::vector<T>& interleaved, ImageShape shape, Layout layout) {
    if (layout == Layout::interleaved)
        return interleaved;
    const std::size_t channels = static_cast<std::size_t>(shape.channels);
    const std::size_t pixels = numbers_in(shape) / channels;
    std::vector<T> result(interleaved.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
        const std::size_t image = i / (pixels * channels);
        const std::size_t rest = i % (pixels * channels);
        result[i] = interleaved[(image * pixels + rest % pixels) * channels + rest / pixels];
    }
    return result;
}

/// Bytes as they are, or normalised.
template <class Out>
std::vector<Out> converted(const std::vector<std::uint8_t>& bytes, const images::Normalize& normalize) {
    std::vector<Out> result;
    for (const std::uint8_t byte : bytes) {
        if constexpr (std::is_same_v<Out, std::uint8_t>) {
            result.push_back(byte);
        } else {
            result.push_back(Out(normalize(static_cast<float>(byte))));
        }
    }
    return result;
}

/// What `work(stream, out)` writes to `count` numbers of device memory, which begin as NaNs, and at `offset` numbers from an
/// aligned address.
template <class Out, class Work>
std::vector<Out> written(std::size_t count, std::size_t offset, const Work& work) {
    const Stream stream;
    sluice::DeviceBuffer<Out, B> out(count + offset);
    sluice::fill_bytes(stream, out, 0xFF);
    work(stream.ref(), out.last(count));
    std::vector<Out> result = nn::to_host(stream.ref(), out);
    result.erase(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(offset));
    return result;
}

/// The text of the sluice::Error that `work` throws.
template <class Work>
std::string error_of(const Work& work) {
    try {
        work();
    } catch (const sluice::Error& error) {
        return error.what();
    }
    return "(no sluice::Error was thrown)";
}

} // namespace images_test

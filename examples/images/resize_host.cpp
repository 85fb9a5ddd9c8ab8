// Resizing on the CPU.
#include <images/resize.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace images {
namespace {

constexpr int channels = 3;
constexpr std::int32_t half = 1 << (AxisWeights::bits - 1);

std::size_t row_size(const AxisWeights& across) { return static_cast<std::size_t>(channels * across.out); }

// Blending two inputs. -------------------------------------------------------------------------------------------

// Vectorised on 16-bit numbers: a processor's product of 16-bit numbers, of which the upper half is kept, divides by 2^16.
// Values have 6 bits of fraction, so a difference of bytes has 7 bits of its own before it is multiplied by a weight of 15.
// Rounding down twice is rounding down once.
constexpr int fraction_bits = 6;

/// What every blend of `a` and `b` begins with.
void prepare(std::size_t count, const std::uint8_t* a, const std::uint8_t* b, std::int16_t* from,
             std::int16_t* step) {
    for (std::size_t i = 0; i < count; ++i) {
        from[i] = static_cast<std::int16_t>((a[i] << fraction_bits) + (1 << (fraction_bits - 1)));
        step[i] = static_cast<std::int16_t>((b[i] - a[i]) * (1 << (fraction_bits + 1)));
    }
}

/// Blends numbers `begin` to before `end`; number i takes the weight `weights[i - begin]`.
void blend(std::size_t begin, std::size_t end, const std::int16_t* from, const std::int16_t* step,
           const std::int16_t* weights, std::uint8_t* __restrict__ out) {
    static_assert(fraction_bits + 1 + AxisWeights::pair_bits - 16 == fraction_bits);
    for (std::size_t i = begin; i < end; ++i) {
        const auto moved = static_cast<std::int16_t>((step[i] * weights[i - begin]) >> 16);
        const auto value = static_cast<std::int16_t>(from[i] + moved);
        out[i] = static_cast<std::uint8_t>(value >> fraction_bits);
    }
}

// Along rows. ----------------------------------------------------------------------------------------------------

/// All rows, by pairs. Each output pixel takes what was prepared of its first input, in 16-bit numbers: they are brought
/// together, four at a time, of which the next pixel overwrites the last one, so that the blend reads them in order.
void resize_rows_by_pairs(const BilinearWeights& weights, ResizeScratch& scratch, const std::uint8_t* in) {
    const AxisWeights& across = weights.across();
    const std::size_t size = row_size(across);
    const std::size_t in_size = static_cast<std::size_t>(channels * across.in);
    scratch.pixel_from.resize(in_size + 1);
    scratch.pixel_step.resize(in_size + 1);
    scratch.from.resize(size + 1);
    scratch.step.resize(size + 1);
    scratch.row_weights.resize(size);
    for (std::size_t i = 0; i < size; ++i)
        scratch.row_weights[i] = across.pair_weight[i / channels];

    for (int y = 0; y < weights.from().height; ++y, in += in_size) {
        const std::size_t last = in_size - channels; // which has nothing behind it
        prepare(last, in, in + channels, scratch.pixel_from.data(), scratch.pixel_step.data());
        prepare(channels, in + last, in + last, scratch.pixel_from.data() + last,
                scratch.pixel_step.data() + last);
        for (int x = 0; x < across.out; ++x) {
            const int pixel = channels * across.first[static_cast<std::size_t>(x)];
            constexpr std::size_t four = 4 * sizeof(std::int16_t);
            std::memcpy(scratch.from.data() + channels * x, scratch.pixel_from.data() + pixel, four);
            std::memcpy(scratch.step.data() + channels * x, scratch.pixel_step.data() + pixel, four);
        }
        blend(0, size, scratch.from.data(), scratch.step.data(), scratch.row_weights.data(),
              scratch.rows.data() + static_cast<std::size_t>(y) * size);
    }
}

void resize_row(const AxisWeights& across, const std::uint8_t* in, std::uint8_t* out) {
    for (int x = 0; x < across.out; ++x) {
        const auto i = static_cast<std::size_t>(x);
        const std::int32_t* weight = across.weight.data() + i * static_cast<std::size_t>(across.taps);
        const std::uint8_t* pixel = in + channels * across.first[i];
        std::int32_t sum[channels] = {half, half, half};
        for (int j = 0; j < across.count[i]; ++j) {
            for (int c = 0; c < channels; ++c)
                sum[c] += weight[j] * pixel[channels * j + c];
        }
        for (int c = 0; c < channels; ++c)
            out[channels * x + c] = static_cast<std::uint8_t>(sum[c] >> AxisWeights::bits);
    }
}

// Along columns. -------------------------------------------------------------------------------------------------

/// A row between two. The weight is read from memory, as often as there are lanes: of a single number, widened to 32 bits,
/// Clang 14 makes products of 32 bits.
void row_between(std::size_t count, const std::int16_t* from, const std::int16_t* step,
                 const std::int16_t (&weights)[ResizeScratch::lanes], std::uint8_t* out) {
    std::size_t begin = 0;
    for (; begin + ResizeScratch::lanes <= count; begin += ResizeScratch::lanes)
        blend(begin, begin + ResizeScratch::lanes, from, step, weights, out);
    blend(begin, count, from, step, weights, out);
}

/// Calls `finish(y, row)` with every row of the result; `destination(y)` says where it is to be written.
template <class Destination, class Finish>
void resize_columns_by_pairs(const BilinearWeights& weights, ResizeScratch& scratch,
                             const Destination& destination, const Finish& finish) {
    const AxisWeights& down = weights.down();
    const std::size_t size = row_size(weights.across());
    scratch.from.resize(size);
    scratch.step.resize(size);
    int prepared = -1;
    for (int y = 0; y < down.out; ++y) {
        const int first = down.first[static_cast<std::size_t>(y)];
        if (first != prepared) {
            const std::uint8_t* rows = scratch.rows.data();
            prepare(size, rows + static_cast<std::size_t>(first) * size,
                    rows + static_cast<std::size_t>(down.second(y)) * size, scratch.from.data(),
                    scratch.step.data());
            prepared = first;
        }
        std::uint8_t* row = destination(y);
        std::fill_n(scratch.weights, ResizeScratch::lanes, down.pair_weight[static_cast<std::size_t>(y)]);
        row_between(size, scratch.from.data(), scratch.step.data(), scratch.weights, row);
        finish(y, row);
    }
}

/// The same with any number of inputs.
template <class Destination, class Finish>
void resize_columns(const BilinearWeights& weights, ResizeScratch& scratch, const Destination& destination,
                    const Finish& finish) {
    const AxisWeights& down = weights.down();
    const std::size_t size = row_size(weights.across());
    for (int y = 0; y < down.out; ++y) {
        const auto i = static_cast<std::size_t>(y);
        scratch.sums.assign(size, half);
        for (int j = 0; j < down.count[i]; ++j) {
            const std::int32_t weight =
                down.weight[i * static_cast<std::size_t>(down.taps) + static_cast<std::size_t>(j)];
            const std::uint8_t* in = scratch.rows.data() + static_cast<std::size_t>(down.first[i] + j) * size;
            for (std::size_t k = 0; k < size; ++k)
                scratch.sums[k] += weight * in[k];
        }
        std::uint8_t* row = destination(y);
        for (std::size_t k = 0; k < size; ++k)
            row[k] = static_cast<std::uint8_t>(scratch.sums[k] >> AxisWeights::bits);
        finish(y, row);
    }
}

// What becomes of a finished row. --------------------------------------------------------------------------------

template <class Out>
Out converted(std::uint8_t byte, const Normalize& normalize) {
    if constexpr (std::is_same_v<Out, std::uint8_t>) {
        return byte;
    } else {
        return Out(normalize(static_cast<float>(byte)));
    }
}

template <class Out>
void write_row(ImageShape shape, int y, const std::uint8_t* row, Out* out, Layout layout,
               const Normalize& normalize) {
    const augment::detail::Strides to = augment::detail::strides(shape, layout);
    out += y * to.row;
    if (layout == Layout::interleaved) {
        for (int i = 0; i < channels * shape.width; ++i)
            out[i] = converted<Out>(row[i], normalize);
        return;
    }
    for (int c = 0; c < channels; ++c) {
        for (int x = 0; x < shape.width; ++x)
            out[c * to.channel + x] = converted<Out>(row[channels * x + c], normalize);
    }
}

} // namespace

BilinearWeights::BilinearWeights(ImageShape from, int height, int width)
    : from_(from), down_(bilinear_weights(from.height, height)),
      across_(bilinear_weights(from.width, width)) {
    if (from.channels != channels) {
        throw sluice::Error("images of " + augment::detail::counted(from.channels, "channel") +
                            " are to be resized; they must have 3");
    }
    augment::detail::require_image("a resize gives images", to());
}

template <class Out>
void resize_image(const BilinearWeights& weights, ResizeScratch& scratch, const std::uint8_t* in, Out* out,
                  Layout layout, const Normalize& normalize) {
    const AxisWeights& across = weights.across();
    const std::size_t size = row_size(across);
    if (weights.from() == weights.to()) {
        for (int y = 0; y < weights.to().height; ++y)
            write_row(weights.to(), y, in + static_cast<std::size_t>(y) * size, out, layout, normalize);
        return;
    }
    const auto in_rows = static_cast<std::size_t>(weights.from().height);
    const std::size_t in_size = static_cast<std::size_t>(channels * across.in);
    scratch.rows.resize(in_rows * size);
    if (across.has_pairs()) {
        resize_rows_by_pairs(weights, scratch, in);
    } else {
        for (std::size_t y = 0; y < in_rows; ++y)
            resize_row(across, in + y * in_size, scratch.rows.data() + y * size);
    }

    // Bytes that stay interleaved are written where they belong at once.
    const bool in_place = std::is_same_v<Out, std::uint8_t> && layout == Layout::interleaved;
    scratch.finished.resize(size);
    const auto destination = [&](int y) {
        return in_place ? reinterpret_cast<std::uint8_t*>(out) + static_cast<std::size_t>(y) * size
                        : scratch.finished.data();
    };
    const auto finish = [&](int y, const std::uint8_t* row) {
        if (!in_place)
            write_row(weights.to(), y, row, out, layout, normalize);
    };
    if (weights.down().has_pairs()) {
        resize_columns_by_pairs(weights, scratch, destination, finish);
    } else {
        resize_columns(weights, scratch, destination, finish);
    }
}

template void resize_image(const BilinearWeights&, ResizeScratch&, const std::uint8_t*, std::uint8_t*, Layout,
                           const Normalize&);
template void resize_image(const BilinearWeights&, ResizeScratch&, const std::uint8_t*, float*, Layout,
                           const Normalize&);
template void resize_image(const BilinearWeights&, ResizeScratch&, const std::uint8_t*, nn::Half*, Layout,
                           const Normalize&);

template <sluice::Backend B, class Out>
void resize(sluice::BasicStreamRef<B> stream, const Resize<B>& resize,
            std::type_identity_t<Images<const std::uint8_t, B>> in, Images<Out, B> out,
            const Normalize& normalize) {
    detail::require_resizable(resize.weights(), in, out);
    stream.enqueue([&weights = resize.weights(), in, out, normalize] {
        ResizeScratch scratch;
        const augment::detail::Strides from = augment::detail::strides(in.shape(), in.layout());
        const augment::detail::Strides to = augment::detail::strides(out.shape(), out.layout());
        for (int i = 0; i < in.count(); ++i) {
            resize_image(weights, scratch, in.data() + i * from.image, out.data() + i * to.image,
                         out.layout(), normalize);
        }
    });
}

using HostIn = Images<const std::uint8_t, sluice::Host>;
template void resize(sluice::HostStreamRef, const Resize<sluice::Host>&, HostIn,
                     Images<std::uint8_t, sluice::Host>, const Normalize&);
template void resize(sluice::HostStreamRef, const Resize<sluice::Host>&, HostIn, Images<float, sluice::Host>,
                     const Normalize&);
template void resize(sluice::HostStreamRef, const Resize<sluice::Host>&, HostIn,
                     Images<nn::Half, sluice::Host>, const Normalize&);

} // namespace images

// Bodies of apply.hpp on the CPU: an image row by row, in strips that fit a cache.
#pragma once

#include <algorithm>

namespace augment {

namespace detail {

template <class C, class In, class Out, sluice::Backend B>
void require_fit(const C& chain, const Images<In, B>& in, const ParameterSource<B>& parameters,
                 const Images<Out, B>& out) {
    static_assert(!std::is_const_v<Out>, "augment::apply: the images to be written are const");
    const ImageShape expected = chain.output_shape(in.shape());
    if (!(out.shape() == expected) || out.count() != in.count()) {
        throw sluice::Error("a chain makes " + counted(in.count(), "image") + " of " + text_of(expected) +
                            " from those of " + text_of(in.shape()) + "; it was given room for " +
                            std::to_string(out.count()) + " of " + text_of(out.shape()));
    }
    parameters.require_count(in.count());
}

/// Where strips of a blurred image are computed. One image at a time, one thread.
template <class C, int Channels, class Source, class Out>
class StripWork {
    static constexpr bool blurred = C::blur < C::size;
    static constexpr int half() {
        if constexpr (blurred) {
            return C::template Op<C::blur>::half;
        } else {
            return 0;
        }
    }
    static constexpr std::size_t size(int count) { return static_cast<std::size_t>(count); }
    static constexpr int taps = 2 * half() + 1;
    static constexpr int strip = 256;
    static constexpr int room = strip + 2 * half();

public:
    StripWork(const typename C::Prepared& prepared, const Source& source, int first_channel, ImageShape shape,
              Out* out, Strides strides)
        : prepared_(prepared), source_(source), first_channel_(first_channel), shape_(shape), out_(out),
          strides_(strides) {}

    void run() {
        for (int left = 0; left < shape_.width; left += strip) {
            const int columns = std::min(strip, shape_.width - left);
            for (int y = -half(); y < shape_.height + half(); ++y) {
                evaluate(reflected(y, shape_.height), (y + half()) % taps, left, columns + 2 * half());
                if (y >= half())
                    finish(y - half(), left, columns);
            }
        }
    }

private:
    /// One row of what comes before the blur, with as many columns more on both sides as the blur looks at.
    void evaluate(int y, int slot, int left, int count) {
        const ImageAfter<C, C::blur, Channels, Source> image{prepared_, source_, first_channel_};
        for (int i = 0; i < count; ++i) {
            const Pixel<Channels> pixel = image(y, reflected(left - half() + i, shape_.width));
            for (int c = 0; c < Channels; ++c)
                rows_[c][slot][i] = pixel.value[c];
        }
    }

    void finish(int y, int left, int columns) {
        for (int c = 0; c < Channels; ++c) {
            const float* result = rows_[c][0];
            if constexpr (blurred) {
                const auto& weight = element<C::blur>(prepared_).weight;
                // y's own slot is half a ring before that of the row evaluated last.
                blur_columns(c, y, columns + 2 * half(), weight);
                blur_row(columns, weight);
                result = blurred_;
            }
            Out* out = out_ + y * strides_.row + left * strides_.column + c * strides_.channel;
            if (strides_.column == 1) {
                for (int i = 0; i < columns; ++i)
                    out[i] = last(result[i], c);
            } else {
                for (int i = 0; i < columns; ++i)
                    out[i * strides_.column] = last(result[i], c);
            }
        }
    }

    Out last(float value, int c) const {
        return store_pixel<Out>(finished<C, C::blur + 1>(prepared_, value, first_channel_ + c));
    }

    template <class Weights>
    void blur_columns(int c, int y, int count, const Weights& weight) {
        const float* row[size(taps)];
        for (int k = 0; k < taps; ++k)
            row[k] = rows_[c][(y + k) % taps];
        for (int i = 0; i < count; ++i) {
            float total = weight[0] * row[half()][i];
            for (int k = 1; k <= half(); ++k)
                total += weight[k] * (row[half() - k][i] + row[half() + k][i]);
            column_sums_[i] = total;
        }
    }

    template <class Weights>
    void blur_row(int count, const Weights& weight) {
        const float* centre = column_sums_ + half();
        for (int i = 0; i < count; ++i) {
            float total = weight[0] * centre[i];
            for (int k = 1; k <= half(); ++k)
                total += weight[k] * (centre[i - k] + centre[i + k]);
            blurred_[i] = total;
        }
    }

    const typename C::Prepared prepared_;
    const Source source_;
    const int first_channel_;
    const ImageShape shape_;
    Out* const out_;
    const Strides strides_;
    float rows_[size(Channels)][size(taps)][size(room)];
    float column_sums_[size(room)];
    float blurred_[size(strip)];
};

template <int Channels, class C, class In, class Out>
void apply_to_channels(const C& chain, const In* in, const Strides& in_strides, ImageShape in_shape,
                       const SampleParameters& parameters, Out* out, const Strides& out_strides,
                       ImageShape out_shape) {
    using Source = ImageSource<In, Channels>;
    typename C::Prepared prepared;
    chain.prepare(parameters, in_shape, prepared);
    for (int c = 0; c < in_shape.channels; c += Channels) {
        StripWork<C, Channels, Source, Out> work(prepared, Source{in + c * in_strides.channel, in_strides}, c,
                                                 out_shape, out + c * out_strides.channel, out_strides);
        work.run();
    }
}

template <class C, class In, class Out>
void apply_checked(const C& chain, const Images<const In, sluice::Host>& in,
                   const ParameterSource<sluice::Host>& parameters, Out* out, Layout out_layout) {
    const ImageShape shape = in.shape();
    const ImageShape out_shape = chain.template shape_before<C::size>(shape);
    const Strides from = strides(shape, in.layout());
    const Strides to = strides(out_shape, out_layout);
    for (int i = 0; i < in.count(); ++i) {
        const SampleParameters own = parameters[i];
        if (shape.channels == 3) {
            apply_to_channels<3>(chain, in.data() + i * from.image, from, shape, own, out + i * to.image, to,
                                 out_shape);
        } else {
            apply_to_channels<1>(chain, in.data() + i * from.image, from, shape, own, out + i * to.image, to,
                                 out_shape);
        }
    }
}

} // namespace detail

template <class... Ops, class In, class Out>
void apply(sluice::HostStreamRef stream, const Chain<Ops...>& chain, Images<In, sluice::Host> in,
           std::type_identity_t<ParameterSource<sluice::Host>> parameters, Images<Out, sluice::Host> out) {
    detail::require_fit(chain, in, parameters, out);
    stream.enqueue([chain, in = Images<const std::remove_const_t<In>, sluice::Host>(in), parameters,
                    data = out.data(),
                    layout = out.layout()] { detail::apply_checked(chain, in, parameters, data, layout); });
}

template <class... Ops, class In, class Out>
void apply(const Chain<Ops...>& chain, Images<In, sluice::Host> in,
           std::type_identity_t<ParameterSource<sluice::Host>> parameters, Images<Out, sluice::Host> out) {
    detail::require_fit(chain, in, parameters, out);
    detail::apply_checked(chain, Images<const std::remove_const_t<In>, sluice::Host>(in), parameters,
                          out.data(), out.layout());
}

} // namespace augment

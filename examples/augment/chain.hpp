/// \file
/// Operators one after another, composed at compile time:
///
///     const augment::Chain chain{augment::Crop{128, 128}, augment::Resize{256, 256}, augment::Rotate<augment::Nearest>{},
///                                augment::Blur<7>{}, augment::Normalize{mean, deviation}};
///
/// and evaluated in one pass (apply.hpp, apply.cuh): each pixel of the result pulls the pixels that it needs. A chain has
/// at most one blur, the only operator that needs neighbours of computed pixels, and no geometry after it. A second blur,
/// or a rotation after one, takes two chains with a buffer in between.
#pragma once

#include <cstddef>
#include <tuple>

#include <augment/operators/geometry.hpp>
#include <augment/operators/values.hpp>

namespace augment {

/// An element of a chain. geometry.hpp and values.hpp show the members of an operator.
template <class Op>
concept Operator = requires(const Op op, ImageShape shape, SampleParameters parameters) {
    { Op::kind } -> std::convertible_to<OperatorKind>;
    { op.output_shape(shape) } -> std::same_as<ImageShape>;
    { op.shape_after(shape) } -> std::same_as<ImageShape>;
    { op.prepare(parameters, shape) } -> std::same_as<typename Op::Prepared>;
};

namespace detail {

/// A tuple for kernels: a plain struct, the first element first.
template <class... Elements>
struct OperatorTuple {};
template <class First, class... Rest>
struct OperatorTuple<First, Rest...> {
    First first;
    OperatorTuple<Rest...> rest;
};

template <std::size_t Index, class First, class... Rest>
SLUICE_HOST_DEVICE constexpr auto& element(OperatorTuple<First, Rest...>& pack) {
    if constexpr (Index == 0) {
        return pack.first;
    } else {
        return element<Index - 1>(pack.rest);
    }
}
template <std::size_t Index, class First, class... Rest>
SLUICE_HOST_DEVICE constexpr const auto& element(const OperatorTuple<First, Rest...>& pack) {
    if constexpr (Index == 0) {
        return pack.first;
    } else {
        return element<Index - 1>(pack.rest);
    }
}

inline OperatorTuple<> operator_tuple() { return {}; }
template <class First, class... Rest>
OperatorTuple<First, Rest...> operator_tuple(const First& first, const Rest&... rest) {
    return {first, operator_tuple(rest...)};
}

/// The index of the blur among `kinds`; their number when there is none.
template <std::size_t Count>
constexpr std::size_t blur_place(const OperatorKind (&kinds)[Count]) {
    for (std::size_t i = 0; i < Count; ++i) {
        if (kinds[i] == OperatorKind::blur)
            return i;
    }
    return Count;
}

template <std::size_t Count>
constexpr bool only_values_after_blur(const OperatorKind (&kinds)[Count]) {
    for (std::size_t i = blur_place(kinds) + 1; i < Count; ++i) {
        if (kinds[i] != OperatorKind::value)
            return false;
    }
    return true;
}

} // namespace detail

/// At least one operator, applied from left to right. Trivially copyable where its operators are.
template <class... Ops>
class Chain {
    static_assert(sizeof...(Ops) > 0, "augment::Chain: give at least one operator");
    static_assert((Operator<Ops> && ...),
                  "augment::Chain: each element must be an operator, such as augment::Crop");

public:
    static constexpr std::size_t size = sizeof...(Ops);
    static constexpr OperatorKind kinds[size] = {Ops::kind...};
    /// The blur's index, or `size`.
    static constexpr std::size_t blur = detail::blur_place(kinds);
    static_assert(
        detail::only_values_after_blur(kinds),
        "augment::Chain: after a blur only operators on single values can follow (Scale, Normalize, "
        "Brightness, Contrast); put another blur, or geometry, into a chain of its own");

    template <std::size_t Index>
    using Op = std::tuple_element_t<Index, std::tuple<Ops...>>;
    using Prepared = detail::OperatorTuple<typename Ops::Prepared...>;

    constexpr explicit Chain(const Ops&... ops) : ops_(detail::operator_tuple(ops...)) {}

    /// The shape of the result for images of `in`. Throws `sluice::Error` where an operator does.
    ImageShape output_shape(ImageShape in) const { return checked_shape<0>(in); }

    /// Prepares the operators for one sample's parameters.
    SLUICE_HOST_DEVICE void prepare(const SampleParameters& parameters, ImageShape in,
                                    Prepared& prepared) const {
        prepare_from<0>(parameters, in, prepared);
    }

    template <std::size_t Index>
    SLUICE_HOST_DEVICE const Op<Index>& op() const {
        return detail::element<Index>(ops_);
    }
    /// The shape before operator `Index`, of images that `output_shape` accepts.
    template <std::size_t Index>
    SLUICE_HOST_DEVICE ImageShape shape_before(ImageShape in) const {
        if constexpr (Index == 0) {
            return in;
        } else {
            return op<Index - 1>().shape_after(shape_before<Index - 1>(in));
        }
    }

private:
    template <std::size_t Index>
    ImageShape checked_shape(ImageShape in) const {
        if constexpr (Index == size) {
            return in;
        } else {
            return checked_shape<Index + 1>(op<Index>().output_shape(in));
        }
    }
    template <std::size_t Index>
    SLUICE_HOST_DEVICE void prepare_from(const SampleParameters& parameters, ImageShape in,
                                         Prepared& prepared) const {
        if constexpr (Index < size) {
            detail::element<Index>(prepared) = op<Index>().prepare(parameters, in);
            prepare_from<Index + 1>(parameters, op<Index>().shape_after(in), prepared);
        }
    }

    detail::OperatorTuple<Ops...> ops_;
};

template <class... Ops>
Chain(const Ops&...) -> Chain<Ops...>;

namespace detail {

/// The image after the first `Index` operators of a chain `C`; `source` is the image after the first `Begin`. A functor of
/// coordinates.
template <class C, std::size_t Index, int Channels, class Source, std::size_t Begin = 0>
struct ImageAfter {
    const typename C::Prepared& prepared;
    const Source& source;
    int first_channel;

    SLUICE_HOST_DEVICE Pixel<Channels> operator()(int y, int x) const {
        if constexpr (Index == Begin) {
            return source(y, x);
        } else {
            using Op = typename C::template Op<Index - 1>;
            const ImageAfter<C, Index - 1, Channels, Source, Begin> previous{prepared, source, first_channel};
            const auto& own = element<Index - 1>(prepared);
            if constexpr (Op::kind == OperatorKind::geometry) {
                return Op::template at<Channels>(own, previous, y, x);
            } else {
                Pixel<Channels> pixel = previous(y, x);
                for (int c = 0; c < Channels; ++c)
                    pixel.value[c] = Op::value(own, pixel.value[c], first_channel + c);
                return pixel;
            }
        }
    }
};

/// One value through the operators from `Index` on, all of them on values.
template <class C, std::size_t Index>
SLUICE_HOST_DEVICE float finished(const typename C::Prepared& prepared, float value, int channel) {
    if constexpr (Index >= C::size) {
        return value;
    } else {
        return finished<C, Index + 1>(
            prepared, C::template Op<Index>::value(element<Index>(prepared), value, channel), channel);
    }
}

/// The pixels of one image in memory.
template <class T, int Channels>
struct ImageSource {
    const T* first; ///< of the first channel
    Strides strides;

    SLUICE_HOST_DEVICE Pixel<Channels> operator()(int y, int x) const {
        const int at = y * strides.row + x * strides.column;
        Pixel<Channels> pixel;
        for (int c = 0; c < Channels; ++c)
            pixel.value[c] = load_pixel(first[at + c * strides.channel]);
        return pixel;
    }
};

} // namespace detail

} // namespace augment

/// \file
/// Label maps and boxes that move with their images. On the CPU here; annotations.cuh has the device's functions.
///
/// Only a chain's geometry applies (Crop, RoiAlignCrop, Resize, Flip, Rotate); operators on values and the blur leave labels
/// and boxes unchanged. Pass the chain and the parameters of the images, so that both get the same crop and angle.
#pragma once

#include <augment/apply.hpp>
#include <nn/losses/boxes/box.hpp>

namespace augment {

/// `out[i]` is `labels[i]` as the chain moves images of `shape`: [N, H, W] becomes [N, H', W'], each label that of the
/// nearest pixel (as a resize sees it: of the pixel that holds its centre), and `outside` where a rotation brings in what
/// is beyond the image. Throws `sluice::Error` where the sizes do not fit. `L` is `std::uint8_t` or `std::int32_t`.
template <class... Ops, class L>
void apply_to_labels(sluice::HostStreamRef stream, const Chain<Ops...>& chain, ImageShape shape,
                     std::type_identity_t<ParameterSource<sluice::Host>> parameters,
                     sluice::DeviceSpan<const L, sluice::Host> labels, std::type_identity_t<L> outside,
                     std::type_identity_t<sluice::DeviceSpan<L, sluice::Host>> out);

/// Row i of `boxes` are image i's, in pixels of an image of `shape` in edge coordinates (pixel x covers x … x + 1). A box
/// moves with its four corners through each operator: it becomes what encloses them, clipped to the image that the
/// operator makes. So a rotated box is larger than what it holds, the more so for each rotation of a chain; a box that has
/// left the image lies on its edge without area. Throws `sluice::Error` where the sizes do not fit.
template <class... Ops>
void apply_to_boxes(sluice::HostStreamRef stream, const Chain<Ops...>& chain, ImageShape shape,
                    std::type_identity_t<ParameterSource<sluice::Host>> parameters,
                    nn::PaddedBoxes<const float, sluice::Host> boxes,
                    nn::PaddedBoxes<float, sluice::Host> out);

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

/// Replaces a pixel of the result by the pixel of the input that it comes from; false if that is outside the image.
template <class C, std::size_t Index>
SLUICE_HOST_DEVICE bool nearest_source(const typename C::Prepared& prepared, PixelIndex& place) {
    if constexpr (Index == 0) {
        return true;
    } else {
        using Op = typename C::template Op<Index - 1>;
        if constexpr (Op::kind == OperatorKind::geometry) {
            if (!Op::nearest(element<Index - 1>(prepared), place))
                return false;
        }
        return nearest_source<C, Index - 1>(prepared, place);
    }
}

SLUICE_HOST_DEVICE inline float clipped(float value, int size) {
    const float low = value > 0.0f ? value : 0.0f;
    return low < static_cast<float>(size) ? low : static_cast<float>(size);
}

template <class C, std::size_t Index>
SLUICE_HOST_DEVICE nn::Box<float> moved_box(const C& chain, const typename C::Prepared& prepared,
                                            ImageShape shape, nn::Box<float> box) {
    if constexpr (Index == C::size) {
        return box;
    } else {
        using Op = typename C::template Op<Index>;
        const ImageShape after = chain.template op<Index>().shape_after(shape);
        if constexpr (Op::kind == OperatorKind::geometry) {
            const auto& own = element<Index>(prepared);
            const Point first = Op::forward(own, {box.y1, box.x1});
            nn::Box<float> around{first.x, first.y, first.x, first.y};
            const Point others[3] = {Op::forward(own, {box.y1, box.x2}), Op::forward(own, {box.y2, box.x1}),
                                     Op::forward(own, {box.y2, box.x2})};
            for (const Point& corner : others) {
                around.x1 = corner.x < around.x1 ? corner.x : around.x1;
                around.y1 = corner.y < around.y1 ? corner.y : around.y1;
                around.x2 = corner.x > around.x2 ? corner.x : around.x2;
                around.y2 = corner.y > around.y2 ? corner.y : around.y2;
            }
            box = {clipped(around.x1, after.width), clipped(around.y1, after.height),
                   clipped(around.x2, after.width), clipped(around.y2, after.height)};
        }
        return moved_box<C, Index + 1>(chain, prepared, after, box);
    }
}

/// Computes element `i` of an image's labels.
template <class C, class L>
struct LabelWork {
    const L* labels;
    L* out;
    int height;
    int width;
    int out_height;
    int out_width;
    L outside;

    SLUICE_HOST_DEVICE int count() const { return out_height * out_width; }
    SLUICE_HOST_DEVICE void operator()(const C&, const typename C::Prepared& prepared, int image,
                                       int i) const {
        PixelIndex place{i / out_width, i % out_width};
        const bool inside = nearest_source<C, C::size>(prepared, place);
        const L* own = labels + static_cast<std::int64_t>(image) * height * width;
        out[static_cast<std::int64_t>(image) * count() + i] =
            inside ? own[static_cast<std::int64_t>(place.y) * width + place.x] : outside;
    }
};

template <class C>
struct BoxWork {
    const nn::Box<float>* boxes;
    nn::Box<float>* out;
    int each;
    ImageShape shape;

    SLUICE_HOST_DEVICE int count() const { return each; }
    SLUICE_HOST_DEVICE void operator()(const C& chain, const typename C::Prepared& prepared, int image,
                                       int i) const {
        const std::int64_t at = static_cast<std::int64_t>(image) * each + i;
        out[at] = moved_box<C, 0>(chain, prepared, shape, boxes[at]);
    }
};

/// Runs `work` for each element of each image; annotations.cuh has the same for a device.
template <class C, class Work>
void for_each_image(sluice::HostStreamRef stream, const C& chain, ImageShape shape,
                    const ParameterSource<sluice::Host>& parameters, int images, const Work& work) {
    stream.enqueue([chain, shape, parameters, images, work] {
        for (int image = 0; image < images; ++image) {
            typename C::Prepared prepared;
            chain.prepare(parameters[image], shape, prepared);
            for (int i = 0; i < work.count(); ++i)
                work(chain, prepared, image, i);
        }
    });
}

template <sluice::Backend B, class C, class L>
void labels_on(sluice::BasicStreamRef<B> stream, const C& chain, ImageShape shape,
               const ParameterSource<B>& parameters, sluice::DeviceSpan<const L, B> labels, L outside,
               sluice::DeviceSpan<L, B> out) {
    require_image("label maps", shape);
    const ImageShape after = chain.output_shape(shape);
    const auto size = [](ImageShape s) {
        return static_cast<std::size_t>(s.height) * static_cast<std::size_t>(s.width);
    };
    const std::size_t images = labels.size() / size(shape);
    if (images == 0 || labels.size() != images * size(shape) || out.size() != images * size(after)) {
        throw sluice::Error(std::to_string(labels.size()) + " labels were given for maps of " +
                            std::to_string(shape.height) + "x" + std::to_string(shape.width) +
                            ", and room for " + std::to_string(out.size()) + " in maps of " +
                            std::to_string(after.height) + "x" + std::to_string(after.width) +
                            "; expected as many whole maps of both, at least one");
    }
    parameters.require_count(static_cast<int>(images));
    for_each_image(stream, chain, shape, parameters, static_cast<int>(images),
                   LabelWork<C, L>{labels.data(), out.data(), shape.height, shape.width, after.height,
                                   after.width, outside});
}

template <sluice::Backend B, class C>
void boxes_on(sluice::BasicStreamRef<B> stream, const C& chain, ImageShape shape,
              const ParameterSource<B>& parameters, nn::PaddedBoxes<const float, B> boxes,
              nn::PaddedBoxes<float, B> out) {
    require_image("boxes in images", shape);
    (void)chain.output_shape(shape);
    if (boxes.rows() == 0 || boxes.rows() != out.rows() || boxes.width() != out.width()) {
        throw sluice::Error("boxes of " + std::to_string(boxes.rows()) + " images, " +
                            std::to_string(boxes.width()) + " each, were given room for " +
                            std::to_string(out.rows()) + " images, " + std::to_string(out.width()) +
                            " each; expected the same, for at least one image");
    }
    parameters.require_count(static_cast<int>(boxes.rows()));
    for_each_image(stream, chain, shape, parameters, static_cast<int>(boxes.rows()),
                   BoxWork<C>{boxes.data(), out.data(), static_cast<int>(boxes.width()), shape});
}

} // namespace detail

template <class... Ops, class L>
void apply_to_labels(sluice::HostStreamRef stream, const Chain<Ops...>& chain, ImageShape shape,
                     std::type_identity_t<ParameterSource<sluice::Host>> parameters,
                     sluice::DeviceSpan<const L, sluice::Host> labels, std::type_identity_t<L> outside,
                     std::type_identity_t<sluice::DeviceSpan<L, sluice::Host>> out) {
    detail::labels_on(stream, chain, shape, parameters, labels, outside, out);
}

template <class... Ops>
void apply_to_boxes(sluice::HostStreamRef stream, const Chain<Ops...>& chain, ImageShape shape,
                    std::type_identity_t<ParameterSource<sluice::Host>> parameters,
                    nn::PaddedBoxes<const float, sluice::Host> boxes,
                    nn::PaddedBoxes<float, sluice::Host> out) {
    detail::boxes_on(stream, chain, shape, parameters, boxes, out);
}

} // namespace augment

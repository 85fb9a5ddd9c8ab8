// Normalising on the CPU.
#include <images/normalize.hpp>

namespace images {

template <sluice::Backend B, class Out>
void normalize(sluice::BasicStreamRef<B> stream, const Normalize& normalize,
               std::type_identity_t<Images<const std::uint8_t, B>> in, Images<Out, B> out) {
    detail::require_normalizable(in, out);
    stream.enqueue([normalize, in, out] {
        const ImageShape shape = in.shape();
        const augment::detail::Strides from = augment::detail::strides(shape, in.layout());
        const augment::detail::Strides to = augment::detail::strides(out.shape(), out.layout());
        for (int i = 0; i < in.count(); ++i) {
            for (int c = shape.channels; c < out.shape().channels; ++c) {
                Out* numbers = out.data() + i * to.image + c * to.channel;
                for (int pixel = 0; pixel < shape.height * shape.width; ++pixel)
                    numbers[pixel * to.column] = Out(0.0f);
            }
            for (int c = 0; c < shape.channels; ++c) {
                const std::uint8_t* bytes = in.data() + i * from.image + c * from.channel;
                Out* numbers = out.data() + i * to.image + c * to.channel;
                for (int pixel = 0; pixel < shape.height * shape.width; ++pixel) {
                    numbers[pixel * to.column] =
                        Out(normalize(static_cast<float>(bytes[pixel * from.column])));
                }
            }
        }
    });
}

template void normalize(sluice::HostStreamRef, const Normalize&, Images<const std::uint8_t, sluice::Host>,
                        Images<float, sluice::Host>);
template void normalize(sluice::HostStreamRef, const Normalize&, Images<const std::uint8_t, sluice::Host>,
                        Images<nn::Half, sluice::Host>);

} // namespace images

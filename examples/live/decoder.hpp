/// \file
/// JPEG decoders: libjpeg-turbo on the CPU, nvJPEG on a GPU. Which of them there are, the build decides.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <augment/images.hpp>
#include <live/options.hpp>

namespace live {

/// Decodes images of red, green and blue bytes, interleaved. Each thread has its own.
class Decoder {
public:
    virtual ~Decoder() = default;
    /// What the header says. \throws sluice::Error, here and below, with what is wrong with the file
    virtual augment::ImageShape shape_of(std::span<const std::uint8_t> jpeg) = 0;
    /// Decodes an image of this shape to `pixels`, memory of the kind that the decoder is for, and returns when it is there.
    virtual void decode(std::span<const std::uint8_t> jpeg, augment::ImageShape shape,
                        std::uint8_t* pixels) = 0;
};

/// Null where the build has none.
std::unique_ptr<Decoder> make_cpu_decoder();
std::unique_ptr<Decoder> make_gpu_decoder(); ///< On the current device.

/// The one that is asked for, or that the build has.
/// \throws BadInput when it cannot be had
DecoderKind choose_decoder(std::optional<DecoderKind> wanted, bool on_host);

inline std::unique_ptr<Decoder> make_decoder(DecoderKind kind) {
    return kind == DecoderKind::cpu ? make_cpu_decoder() : make_gpu_decoder();
}

/// The JPEG files of a folder, in the order of their names, all of one shape.
class Photographs {
public:
    /// Takes the shape of the first one that is whole. Whether the others are, shows when they are decoded.
    /// \throws BadInput when there is none
    Photographs(const std::string& folder, Decoder& decoder);

    [[nodiscard]] std::size_t size() const { return files_.size(); }
    [[nodiscard]] augment::ImageShape shape() const { return shape_; }
    /// \throws sluice::Error, naming the file, when it is bad or of another shape
    void decode(std::size_t index, Decoder& decoder, std::uint8_t* pixels) const;

private:
    struct File {
        std::string name;
        std::vector<std::uint8_t> bytes;
    };
    std::vector<File> files_;
    augment::ImageShape shape_;
};

} // namespace live

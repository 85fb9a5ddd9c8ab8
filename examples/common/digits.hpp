/// \file
/// Data sets composed from one file of digits. Every random choice is drawn from numbers counted by
/// (seed, epoch, sample), so a sample is the same whichever thread composes it, and when. All arithmetic is
/// on whole numbers, so it is the same with every compiler too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <common/idx.hpp>
#include <common/scaled_digit.hpp>
#include <sluice/random/philox.hpp>

namespace examples {

/// The label of a pixel without ink.
inline constexpr std::uint8_t background_label = digit_classes;

/// Classes of the segmentation: the digits and background.
inline constexpr std::size_t segmentation_classes = digit_classes + 1u;

/// A pixel of an enlarged digit is ink, and labelled with the digit's class, where its grey, before gain and
/// tint, is at least this; fainter pixels are drawn too, but labelled as background.
inline constexpr std::uint8_t ink_threshold = 96;

/// Background is noise, uniform in 0 … background_noise-1 for each pixel and channel.
inline constexpr std::uint8_t background_noise = 24;

/// The longest side of a canvas; the noise of a larger one would use up a sample's random numbers.
inline constexpr std::size_t largest_canvas_side = 512;
static_assert(largest_canvas_side <= largest_digit_side); // a digit may fill it

/// How digits are laid out on a canvas.
struct CanvasSpec {
    std::size_t height = 64; ///< pixels, a multiple of `cell` for segmentation
    std::size_t width = 64;  ///< pixels, a multiple of `cell` for segmentation
    std::size_t cell =
        16; ///< the canvas is a grid of square cells of this side; each holds at most one digit
    std::size_t digit = 12; ///< the side that a digit is scaled to, at most `cell`
    float presence = 0.75f; ///< the probability that a cell holds a digit
};

/// Bytes of an image on such a canvas: three planes.
constexpr std::size_t image_bytes(const CanvasSpec& spec) { return 3 * spec.height * spec.width; }

/// Bytes of its map of labels.
constexpr std::size_t label_bytes(const CanvasSpec& spec) { return spec.height * spec.width; }

/// Composes sample `sample` of (seed, epoch) for segmentation: each cell holds, with the probability
/// `spec.presence`, a random digit of `split`, at a random place within the cell; one random cell holds one
/// in any case, so that no canvas is empty. Each digit has a random gain (0.75 to 1) and a random tint (each
/// channel 0.5 to 1), drawn over dark noise. Allocates nothing; safe from several threads. \param image
/// receives three planes of height × width \param labels receives height × width classes: a digit's where
/// there is ink, otherwise `background_label` \throws std::invalid_argument when the spec contradicts itself,
/// the split is empty, or a span is of another size
void compose_segmentation(const IdxSplit& split, const CanvasSpec& spec, std::uint64_t seed,
                          std::uint32_t epoch, std::uint64_t sample, std::span<std::uint8_t> image,
                          std::span<std::uint8_t> labels);

/// Composes sample `sample` of (seed, epoch) for classification: one digit anywhere on the canvas, which is
/// taken as one cell (`spec.cell` and `spec.presence` do not count), drawn as in `compose_segmentation`.
/// Samples 0 to n-1, n to 2n-1, … of an epoch, with n the size of the split, each show every digit once, in
/// an order of the epoch's own. Allocates nothing; safe from several threads. \param image receives three
/// planes of height × width \return the digit's class \throws std::invalid_argument as `compose_segmentation`
/// does
std::uint8_t compose_classification(const IdxSplit& split, const CanvasSpec& spec, std::uint64_t seed,
                                    std::uint32_t epoch, std::uint64_t sample, std::span<std::uint8_t> image);

/// What the composers of canvases share: checks of a canvas, and the noise behind the digits.
namespace canvas {

/// What a sample draws random numbers for; each has a run of its own.
enum Operation : std::uint16_t {
    noise_operation = 1,
    layout_operation,
    order_operation,
    detection_operation,
};

/// Uniform among 0 … bound-1.
inline std::uint32_t below(sluice::CountedRandom& random, std::size_t bound) {
    return random.below(static_cast<std::uint32_t>(bound));
}

/// Throws std::invalid_argument, which names the canvas.
[[noreturn]] void reject(const std::string& what);

/// Throws unless `found` is `expected`.
void require_bytes(std::size_t found, std::size_t expected, const char* what);

/// Throws unless the sides are 1 to `largest_canvas_side`, a digit of side `digit` fits, and `split` holds as
/// many labels as images, at least one.
void require_usable(const IdxSplit& split, std::size_t height, std::size_t width, std::size_t digit);

/// Fills `image` with dark noise.
void draw_noise(sluice::CountedRandom random, std::span<std::uint8_t> image);

/// Number `sample` of an order in which each of `count` things comes once a lap: k ↦ (offset + stride·k) mod count, with
/// an offset and a stride of the lap's own, which has no divisor in common with the count.
std::size_t shuffled(std::uint64_t seed, std::uint32_t epoch, std::uint64_t sample, std::size_t count);

} // namespace canvas

} // namespace examples

/// \file
/// What `spectrometer` can be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <common/options.hpp>

namespace spectrometer {

/// How a sample lies in memory: real part, imaginary part.
enum class Format : std::uint8_t {
    int8,    ///< 128 is full scale
    float32, ///< little-endian; 1 is full scale
};

constexpr std::size_t bytes_of_sample(Format format) { return format == Format::int8 ? 2 : 8; }

/// The options that examples share as far as they make sense here, and this one's.
struct Options : examples::CommonOptions {
    std::string input; ///< a file of samples; empty: they are generated
    Format format = Format::int8;
    std::vector<double> tones{0.125, -0.3, 0.31}; ///< generated: cycles a sample, -0.5 to 0.5
    std::optional<std::size_t> samples;           ///< at most so many of a file, or so many generated ones
    std::size_t fft = 4096;                       ///< samples of a transform, even
    std::size_t transforms = 64;                  ///< in a block, each half a transform behind the one before
    int integrate = 16;                           ///< blocks of a spectrum
    std::string output;                           ///< .npy or .csv; empty for nowhere
    std::string picture;                          ///< .svg; empty for nowhere
    examples::TimelineOptions timelines;

    /// Samples from one transform's begin to the next one's: half of them are the same.
    [[nodiscard]] std::size_t hop() const { return fft / 2; }
    [[nodiscard]] std::size_t block_samples() const { return hop() * transforms; }
    [[nodiscard]] std::size_t block_bytes() const { return block_samples() * bytes_of_sample(format); }
};

/// Reads the command line into `options`. Returns an exit code when the program is to end at once.
std::optional<int> parse(int argc, char** argv, Options& options);

} // namespace spectrometer

/// \file
/// What `live` can be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <common/options.hpp>

namespace live {

/// Who decodes JPEG.
enum class DecoderKind : std::uint8_t {
    cpu, ///< libjpeg-turbo, into pinned memory
    gpu, ///< nvJPEG, into device memory
};

/// The options that examples share as far as they make sense here, and this one's.
struct Options : examples::CommonOptions {
    int cameras = 4;
    int rate = 30;                      ///< frames a second of each camera; 0: a frame whenever one is taken
    int seconds = 10;                   ///< that the cameras run
    std::optional<std::size_t> frames;  ///< of each camera, instead
    std::string photographs;            ///< a folder of JPEG files
    std::optional<DecoderKind> decoder; ///< otherwise libjpeg-turbo where the build has it
    int in_flight = 2;                  ///< frames under way, at most
    std::optional<int> image;           ///< side of the network's images
    std::optional<int> channels;        ///< of the network's first stage
    int best = 3;                       ///< classes of a frame that are written
    std::string output;                 ///< JSON lines; empty for nowhere
    examples::TimelineOptions timelines;

    [[nodiscard]] std::size_t frames_of_camera() const {
        return frames.value_or(static_cast<std::size_t>(rate) * static_cast<std::size_t>(seconds));
    }
};

/// Reads the command line into `options`. Returns an exit code when the program is to end at once.
std::optional<int> parse(int argc, char** argv, Options& options);

} // namespace live

/// \file
/// Reading and writing whole files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// The number of bytes in the regular file `path`.
/// \param wanted what the file should be, for the error, for example "an IDX file of images"
/// \throws BadInput when there is no such file, or it is a folder or another thing that is not a regular file
std::uintmax_t size_of_file(const std::filesystem::path& path, const std::string& wanted);

/// The first `limit` bytes of the regular file `path`; all of them when it holds fewer.
/// \throws BadInput when the file cannot be opened or read
std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path, std::uintmax_t limit,
                                     const std::string& wanted);

/// Whether `bytes` begin like a gzip stream.
bool is_gzip(std::span<const std::uint8_t> bytes);

/// Writes `bytes` to `path` so that a reader sees the old file or the whole new one, also when the process is killed or
/// the machine stops, and nothing is left behind on failure: the bytes go to another file in the same folder, to the disk,
/// and that file then takes the place of `path`. Where the file system has files without a name, nothing is left of a
/// killed process either; elsewhere `path.partial-PID` may be. A device or a pipe, such as /dev/stdout, is written to
/// directly. \throws BadInput, naming `path`, when it cannot be written
void write_whole_file(const std::filesystem::path& path, std::span<const std::uint8_t> bytes);

/// The same for text.
void write_whole_file(const std::filesystem::path& path, std::string_view text);

/// Checks what can be checked of `path` before hours of work end in a file that cannot be written.
/// \throws BadInput when the folder that is to hold `path` does not exist, or `path` is a folder
void require_writable_place(const std::filesystem::path& path);

} // namespace examples

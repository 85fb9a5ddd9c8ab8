/// \file
/// Reading and writing whole files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// A file descriptor, or none.
class Descriptor {
public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor();

    [[nodiscard]] int number() const { return number_; } ///< negative for none

private:
    int number_;
};

/// What `write_whole_file` does, for bytes that come piece by piece: before `finish`, or without it, the file at `path` stays as
/// it was. \throws BadInput, naming `path`, from each of the three, when it cannot be written
class WholeFile {
public:
    explicit WholeFile(std::filesystem::path path);
    WholeFile(const WholeFile&) = delete;
    WholeFile& operator=(const WholeFile&) = delete;
    ~WholeFile();

    void write(std::span<const std::uint8_t> bytes);
    void finish();

private:
    std::filesystem::path path_, target_;
    // What takes the place of target_; empty where path_ is written to directly.
    std::filesystem::path partial_;
    bool nameless_ = false; // partial_ comes only with `finish`
    Descriptor file_;
};

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

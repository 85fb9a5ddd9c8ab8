#include <common/files.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <common/bad_input.hpp>
#include <common/text.hpp>

namespace examples {
namespace {

namespace fs = std::filesystem;

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void cannot_write(const fs::path& path, int error_number) {
    throw BadInput(path.string() + ": cannot be written: " + system_message(error_number));
}

/// Writes and closes; 0, or the error number.
int write_and_close(const fs::path& path, std::span<const std::uint8_t> bytes) {
    errno = 0;
    File file{std::fopen(path.c_str(), "wb")};
    if (!file)
        return errno;
    if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size())
        return errno;
    // A full disk may only show when the last buffer goes out.
    return std::fclose(file.release()) == 0 ? 0 : errno;
}

bool is_written_directly(const fs::path& path, const fs::file_status& status) {
    // Renaming over /dev/stdout would replace the device, even where it stands for a regular file.
    return (fs::exists(status) && !fs::is_regular_file(status)) || path.string().starts_with("/dev/");
}

} // namespace

std::uintmax_t size_of_file(const fs::path& path, const std::string& wanted) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
        throw BadInput(path.string() + ": cannot be read: " +
                       (error ? error.message() : system_message(ENOENT)) + "; expected " + wanted);
    }
    if (!fs::is_regular_file(status)) {
        throw BadInput(path.string() + ": is " +
                       (fs::is_directory(status) ? "a folder" : "not a regular file") + "; expected " +
                       wanted);
    }
    const std::uintmax_t size = fs::file_size(path, error);
    if (error)
        throw BadInput(path.string() + ": cannot be read: " + error.message() + "; expected " + wanted);
    return size;
}

std::vector<std::uint8_t> read_bytes(const fs::path& path, std::uintmax_t limit, const std::string& wanted) {
    const std::uintmax_t size = size_of_file(path, wanted);
    errno = 0;
    File file{std::fopen(path.c_str(), "rb")};
    if (!file)
        throw BadInput(path.string() + ": cannot be read: " + system_message(errno) + "; expected " + wanted);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(limit < size ? limit : size));
    const std::size_t read = bytes.empty() ? 0 : std::fread(bytes.data(), 1, bytes.size(), file.get());
    if (std::ferror(file.get()) != 0) {
        throw BadInput(path.string() + ": cannot be read: " + system_message(errno) + "; expected " + wanted);
    }
    bytes.resize(read);
    return bytes;
}

bool is_gzip(std::span<const std::uint8_t> bytes) {
    return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

void write_whole_file(const fs::path& path, std::span<const std::uint8_t> bytes) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status))
        cannot_write(path, EISDIR);
    if (is_written_directly(path, status)) {
        if (const int failure = write_and_close(path, bytes); failure != 0)
            cannot_write(path, failure);
        return;
    }
    // The file that a link names is replaced, not the link.
    error.clear(); // a file that is not there yet is no error
    const fs::path target = fs::exists(status) ? fs::canonical(path, error) : path;
    if (error)
        cannot_write(path, error.value());
    const fs::path partial = target.string() + ".partial-" + std::to_string(::getpid());
    if (const int failure = write_and_close(partial, bytes); failure != 0) {
        fs::remove(partial, error);
        cannot_write(path, failure);
    }
    fs::rename(partial, target, error);
    if (error) {
        std::error_code ignored;
        fs::remove(partial, ignored);
        cannot_write(path, error.value());
    }
}

void write_whole_file(const fs::path& path, std::string_view text) {
    write_whole_file(path, std::span{reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void require_writable_place(const fs::path& path) {
    std::error_code error;
    if (path.empty())
        throw BadInput("an empty file name cannot be written to; expected a path");
    if (fs::is_directory(path, error))
        cannot_write(path, EISDIR);
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path{"."};
    if (!fs::is_directory(folder, error)) {
        throw BadInput(path.string() + ": cannot be written: there is no folder " + folder.string());
    }
}

} // namespace examples
